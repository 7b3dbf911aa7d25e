// SPDX-License-Identifier: MIT
#include "folded/frame_pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/error.h"

namespace pe::folded {

FramePattern::FramePattern(const std::string& option, std::span<const std::string> expressions) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  for (const std::string& text : expressions) {
    expressions_.push_back(std::make_unique<re2::RE2>(text, options));
    if (!expressions_.back()->ok())
      throw UsageError(fmt::format("--{}: not a regular expression: '{}': {}", option, text,
                                   expressions_.back()->error()));
  }
}

FramePattern::FramePattern(FramePattern&&) noexcept = default;
FramePattern::~FramePattern() = default;

bool FramePattern::matches(FrameId frame, const FrameTable& table) {
  if (frame >= known_.size())
    known_.resize(table.size(), Known::kNotYet);
  Known& known = known_[frame];
  if (known == Known::kNotYet) {
    const std::string_view text = table[frame];
    const bool is_match =
        std::any_of(expressions_.begin(), expressions_.end(), [text](const auto& expression) {
          return re2::RE2::PartialMatch({text.data(), text.size()}, *expression);
        });
    known = is_match ? Known::kYes : Known::kNo;
  }
  return known == Known::kYes;
}

bool FramePattern::matches_any(std::span<const FrameId> frames, const FrameTable& table) {
  return std::any_of(frames.begin(), frames.end(),
                     [&](FrameId frame) { return matches(frame, table); });
}

}  // namespace pe::folded
