// Runs a tool in this process, with `input` on its standard input.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
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

using ToolMain = int (*)(std::span<const std::string> args, Io& io);

/// The tool reads `input` from a file, so it may have any length.
inline Result run_tool(ToolMain tool_main, const std::vector<std::string>& args,
                       std::string_view input = "") {
  const Fd in = memory_file(input);
  StringOutput out;
  StringOutput err;
  Io io{in.get(), out, err};
  const int status = tool_main(args, io);
  return {status, out.text, err.text};
}

}  // namespace pe::testing
