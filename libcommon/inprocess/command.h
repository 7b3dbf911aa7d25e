// A command that one of our libraries is to be loaded into: will it be, and from where?
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace pe::inprocess {

/// The file that the command's name stands for, as execvp(3) finds it.  Throws CommandError.
std::string find_program(const std::string& name);

/// Throws Error "<path>: is ..." if the dynamic linker would not load a library into the program at
/// that path: a static one, one of another machine, one with more rights than we have; or if it
/// would not start then: one with AddressSanitizer.  Of a script, its interpreter.
void check_takes_library(const std::string& path);

/// The path of the library that is called `name`, beside this tool in the build folder, or where it
/// was installed.  Throws Error.
std::string find_library(const std::string& name);

/// "LD_PRELOAD=...", with `library` before those that are in our own environment.
std::string preload_variable(const std::string& library);

}  // namespace pe::inprocess
