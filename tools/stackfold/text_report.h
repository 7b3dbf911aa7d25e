// What became of a text input, for the closing line.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "stackfold/sample_choice.h"

namespace pe::fold {

struct TextReport : SampleChoice {
  std::uint64_t samples = 0;                ///< folded
  std::uint64_t modules_without_debug = 0;  ///< of those that --inline looked for
  std::string first_without_debug;          ///< the first one's path
  std::uint64_t ignored_lines = 0;          ///< lines that are nothing of the format
  std::string first_ignored;                ///< "FILE:LINE: 'text'"
  std::string left_out;  ///< what else is not in the output, in words; empty: nothing
  std::string damage;    ///< empty, or how the input ended badly
};

}  // namespace pe::fold
