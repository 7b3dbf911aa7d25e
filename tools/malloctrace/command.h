// The command that is to be traced: can it be, and what must it find in its environment?
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "malloctrace/options.h"

namespace pe::malloctrace {

/// Throws Error if the dynamic linker would not load a library into the program of that name: a
/// static one, one of another machine, one with more rights than we have.  Scripts pass, and so
/// does what cannot be found, which starting it will tell.
void check_can_be_traced(const std::string& program);

/// The library that is loaded into traced programs, beside this one: in the build folder, or where
/// it was installed.  Throws Error.
std::string find_preload_library();

/// What the command gets into its environment.  `socket`: see Processes.
std::vector<std::string> tracing_environment(const Options& options, std::string_view library,
                                             std::string_view socket);

}  // namespace pe::malloctrace
