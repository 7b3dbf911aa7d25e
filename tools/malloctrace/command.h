// The command that is to be traced: can it be, and what must it find in its environment?
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "malloctrace/options.h"
#include "preload/listener.h"

namespace pe::malloctrace {

/// The file that the command's name stands for, as execvp(3) finds it.  Throws CommandError.
std::string find_program(const std::string& name);

/// Throws UsageError if `output` is the file `program`.
void check_is_not_output(const std::string& program, const std::string& output);

/// Throws Error if the dynamic linker would not load a library into the program at that path: a
/// static one, one of another machine, one with more rights than we have; or if it would not start
/// then: one with AddressSanitizer, or where addresses are limited.  Of a script, its interpreter.
void check_can_be_traced(const std::string& path);

/// The library that is loaded into traced programs, beside this one: in the build folder, or where
/// it was installed.  Throws Error.
std::string find_preload_library();

/// What the command gets into its environment, so that it sends to `listener`.
std::vector<std::string> tracing_environment(const Options& options, std::string_view library,
                                             const preload::Listener& listener);

}  // namespace pe::malloctrace
