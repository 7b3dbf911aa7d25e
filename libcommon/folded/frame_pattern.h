// Frames whose text matches one of several regular expressions.
//
// The expressions are RE2's (https://github.com/google/re2/wiki/Syntax): matching takes time in
// proportion to the text and no stack, whatever the expression and however hostile the name.
// std::regex recurses over the text, and backtracking engines take exponential time.
// Each frame is matched once, however many stacks it is in.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "folded/frame_table.h"

namespace re2 {
class RE2;
}

namespace pe::folded {

class FramePattern {
 public:
  /// Matches where any of `expressions` does, anywhere in the text; none of them: never.
  /// Throws UsageError("--include: ...") for option "include".
  FramePattern(const std::string& option, std::span<const std::string> expressions);
  FramePattern(const FramePattern&) = delete;
  FramePattern& operator=(const FramePattern&) = delete;
  FramePattern(FramePattern&&) noexcept;
  FramePattern& operator=(FramePattern&&) = delete;
  ~FramePattern();

  [[nodiscard]] bool is_empty() const noexcept { return expressions_.empty(); }
  /// Does the text of `frame` match?  Always ask with the same table.
  bool matches(FrameId frame, const FrameTable& table);
  bool matches_any(std::span<const FrameId> frames, const FrameTable& table);

 private:
  enum class Known : std::uint8_t { kNo, kYes, kNotYet };

  std::vector<std::unique_ptr<re2::RE2>> expressions_;
  std::vector<Known> known_;  ///< by FrameId
};

}  // namespace pe::folded
