// Converts a function as perf, addr2line and similar tools print it to the text of a frame, without
// its parameters.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pe::fold {

/// Splits "a->b->c", a chain of inlined functions.  "operator->" and a "->" within brackets do not
/// divide.
std::vector<std::string_view> split_inlined(std::string_view function);

/// Removes the lists of parameters and tidies:
/// "std::function<void (int)>::operator()(int) const" becomes
/// "std::function<void (int)>::operator()".
std::string function_name(std::string_view function, bool is_java = false);

/// Removes quotes, and replaces ';' by ':'.  With `is_java`, removes the L before a class.
std::string tidied(std::string name, bool is_java);

/// Cuts at the blank before the list of arguments that gdb prints: "f (a=1) at x.c:3"
/// becomes "f", and "operator() (this=0x1)" becomes "operator()".
std::string_view without_arguments(std::string_view text);

}  // namespace pe::fold
