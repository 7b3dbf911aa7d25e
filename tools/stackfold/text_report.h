// The result of reading a text input, for the closing line.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "stackfold/sample_choice.h"

namespace pe::fold {

struct TextReport : SampleChoice {
  std::uint64_t samples = 0;                ///< folded
  std::uint64_t without_stack = 0;          ///< of these, samples that have no frame
  std::string unit;                         ///< of the counts, if it is not samples; may be empty
  bool is_empty_profile = false;            ///< the input has the format, and no sample
  std::uint64_t modules_without_debug = 0;  ///< modules without debug information for --inline
  std::string first_without_debug;          ///< the path of the first of them
  std::uint64_t ignored_lines = 0;          ///< lines that do not belong to the format
  std::string first_ignored;                ///< "FILE:LINE: 'text'"
  std::string left_out;  ///< a message on other data that the output lacks; may be empty
  std::string damage;    ///< a message on damage in the input; may be empty
};

}  // namespace pe::fold
