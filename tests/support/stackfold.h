// Runs stackfold in this process.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stackfold/stackfold.h"
#include "support/run_tool.h"

namespace pe::testing {

inline Result stackfold(const std::vector<std::string>& args, std::string_view input = "") {
  return run_tool(kStackfold, args, input);
}

/// The folded stacks of `input`, whose format stackfold must recognise by its content.
inline std::string folded(std::string_view input) { return stackfold({}, input).out; }

}  // namespace pe::testing
