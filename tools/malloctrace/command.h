// Checks that the command can be traced, and builds the environment that it needs.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "malloctrace/options.h"
#include "recording/inprocess/listener.h"

namespace pe::malloctrace {

/// Throws UsageError if `output` is the file `program`.
void check_is_not_output(const std::string& program, const std::string& output);

/// Throws Error if the program at `path` cannot load the library (recording/inprocess/command.h),
/// or if a limit on addresses leaves no room for it.
void check_can_be_traced(const std::string& path);

/// Returns the environment variables that make the command load `library` and send to `listener`.
std::vector<std::string> tracing_environment(const Options& options, const std::string& library,
                                             const inprocess::Listener& listener);

}  // namespace pe::malloctrace
