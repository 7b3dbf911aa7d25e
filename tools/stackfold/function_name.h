// A function as perf, addr2line and friends print it, made into a frame:
// without its parameters.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pe::fold {

/// "a->b->c", a chain of inlined functions, taken apart.  As the perl has it, every
/// "->" divides; otherwise not that of "operator->", nor one within brackets.
std::vector<std::string_view> split_inlined(std::string_view function, bool is_perl);

/// Without parameters and quotes, ';' as ':'.  The perl cuts at the first "(" that
/// does not open "(anonymous namespace)", and nothing where Go's ".(*T)." occurs;
/// otherwise just the lists of parameters go: "std::function<void (int)>::operator()(int) const"
/// is "std::function<void (int)>::operator()".
std::string function_name(std::string_view function, bool is_perl, bool is_java);

/// What stands before the blank and the list of arguments that gdb prints: "f (a=1) at x.c:3"
/// is "f", "operator() (this=0x1)" is "operator()".
std::string_view without_arguments(std::string_view text);

}  // namespace pe::fold
