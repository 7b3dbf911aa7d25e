// Runs stacktop in this process.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stacktop/stacktop.h"
#include "support/run_tool.h"

namespace pe::testing {

inline Result stacktop(const std::vector<std::string>& args, std::string_view input = "") {
  return run_tool(kStacktop, args, input);
}

}  // namespace pe::testing
