// The command that is to be traced: can it be, and what must it find in its environment?
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inprocess/listener.h"
#include "malloctrace/options.h"

namespace pe::malloctrace {

/// Throws UsageError if `output` is the file `program`.
void check_is_not_output(const std::string& program, const std::string& output);

/// Throws Error if the library cannot be loaded into the program at that path
/// (inprocess/command.h), or finds no room where addresses are limited.
void check_can_be_traced(const std::string& path);

/// What the command gets into its environment, so that it sends to `listener`.
std::vector<std::string> tracing_environment(const Options& options, const std::string& library,
                                             const inprocess::Listener& listener);

}  // namespace pe::malloctrace
