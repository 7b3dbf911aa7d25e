// Runs flamesvg in this process.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flamesvg/flamesvg.h"
#include "support/run_tool.h"

namespace pe::testing {

inline Result flamesvg(const std::vector<std::string>& args, std::string_view input = "") {
  return run_tool(kFlamesvg, args, input);
}

}  // namespace pe::testing
