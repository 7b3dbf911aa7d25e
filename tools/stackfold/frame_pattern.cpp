// SPDX-License-Identifier: MIT
#include "stackfold/frame_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace pe::folded {

FramePattern::FramePattern(const std::string& option, std::span<const std::string> expressions) {
  expressions_.reserve(expressions.size());
  for (const std::string& text : expressions) {
    std::string why;
    auto expression = Expression::parse(text, why);
    if (!expression)
      throw UsageError(fmt::format("--{}: not a regular expression: '{}': {}", option, text, why));
    expressions_.push_back(std::move(*expression));
  }
}

bool FramePattern::matches(FrameId frame, const FrameTable& table) {
  if (frame >= known_.size())
    known_.resize(table.size(), Known::kNotYet);
  Known& known = known_[frame];
  if (known == Known::kNotYet) {
    const std::string_view text = table[frame];
    const bool is_match =
        std::any_of(expressions_.begin(), expressions_.end(),
                    [text](const Expression& expression) { return expression.matches(text); });
    known = is_match ? Known::kYes : Known::kNo;
  }
  return known == Known::kYes;
}

bool FramePattern::matches_any(std::span<const FrameId> frames, const FrameTable& table) {
  return std::any_of(frames.begin(), frames.end(),
                     [&](FrameId frame) { return matches(frame, table); });
}

}  // namespace pe::folded
