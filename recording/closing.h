// Describes the stacks of a recording in its closing lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/cli/closing.h"
#include "unwind/stacks/stack_counts.h"

namespace pe::recording {

/// Returns "12 lost, 99.9 % of stacks complete"; without stacks, only the first part.
std::string describe_quality(std::uint64_t lost, const unwind::StackCounts& counts);

/// Adds the details of these stacks, and doubts: many are incomplete, or some were not walked.
struct StackFixes {
  std::string_view if_cut;      ///< for stacks that are deeper than their copies
  std::string_view if_foreign;  ///< for those of 32-bit programs
};
void add_stacks(Closing& closing, const unwind::StackCounts& counts, const StackFixes& fixes);

}  // namespace pe::recording
