// Finds a command and the library to load into it, and checks whether that will work.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace pe::inprocess {

/// Returns the file that execvp(3) would execute for the command `name`.  Throws CommandError.
std::string find_program(const std::string& name);

/// Returns the program at `path` and, if it is a script, those that the kernel or env(1) executes
/// for it.
std::vector<std::string> programs_of(const std::string& path);
/// Does so for the command `name`; empty if it cannot be executed, which its child reports.
std::vector<std::string> programs_of_command(const std::string& name);

/// Throws Error "<path>: is ..." if the dynamic linker would not load a library into the program at
/// `path`.  Such a program is static, is for another machine, or gets more privileges than we have.
/// Also throws for a program with AddressSanitizer, which would not start with the library.  Checks
/// the interpreter of a script.
void check_takes_library(const std::string& path);

/// Returns the path of the library `name`: beside this tool in the build folder, or in the folder
/// of its installation.  If LD_PRELOAD cannot hold that path, the result is another path of it,
/// which is valid while this process runs.  Throws Error.
std::string find_library(const std::string& name);

/// Returns "LD_PRELOAD=...", with `library` before the libraries of our own LD_PRELOAD.
std::string preload_variable(const std::string& library);

}  // namespace pe::inprocess
