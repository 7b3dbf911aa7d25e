// Finds frames whose text matches one of several regular expressions.
//
// Each frame is matched only once, even if it is in many stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "folded/expression.h"
#include "stackfold/frame_table.h"

namespace pe::folded {

class FramePattern {
 public:
  /// Matches a frame if any of `expressions` matches anywhere in its text; without expressions,
  /// never.  Throws UsageError("--include: ...") for option "include".
  FramePattern(const std::string& option, std::span<const std::string> expressions);

  [[nodiscard]] bool is_empty() const noexcept { return expressions_.empty(); }
  /// Does the text of `frame` match?  All calls must use the same table.
  bool matches(FrameId frame, const FrameTable& table);
  bool matches_any(std::span<const FrameId> frames, const FrameTable& table);

 private:
  enum class Known : std::uint8_t { kNo, kYes, kNotYet };

  std::vector<Expression> expressions_;
  std::vector<Known> known_;  ///< by FrameId
};

}  // namespace pe::folded
