// Runs a tool in this process, with `input` on its standard input.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/cli/run.h"
#include "support/memory_input.h"
#include "support/string_output.h"

namespace pe::testing {

struct Result {
  int status;
  std::string out, err;
};

/// Runs the tool under the name by which it was `called`.  It reads `input` from a file, so it may
/// have any length.
inline Result run_tool_as(const Tool& tool, std::string_view called,
                          const std::vector<std::string>& args, std::string_view input = "") {
  const Fd in = memory_file(input);
  StringOutput out;
  StringOutput err;
  Io io{in.get(), out, err};
  const int status = run_as(tool, called, args, io);
  return {status, out.text, err.text};
}

inline Result run_tool(const Tool& tool, const std::vector<std::string>& args,
                       std::string_view input = "") {
  return run_tool_as(tool, tool.name, args, input);
}

}  // namespace pe::testing
