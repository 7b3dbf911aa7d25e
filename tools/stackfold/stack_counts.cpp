// SPDX-License-Identifier: MIT
#include "stackfold/stack_counts.h"

#include <algorithm>
#include <limits>
#include <string>

namespace pe::fold {

/// One multiplication a frame, folded to 64 bits (the mixing step of wyhash).
std::size_t StackCounts::Hash::operator()(std::span<const FrameId> frames) const {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t hash = frames.size() * kOdd;
  __extension__ using Wide = unsigned __int128;
  for (const FrameId frame : frames) {
    const Wide product = static_cast<Wide>(hash ^ frame) * kOdd;
    hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  return hash;
}

bool StackCounts::Equal::operator()(std::span<const FrameId> frames, Index index) const {
  const auto other = owner->frames_of(index);
  return std::equal(frames.begin(), frames.end(), other.begin(), other.end());
}

void StackCounts::add(std::span<const FrameId> frames, std::uint64_t weight) {
  const auto found = stacks_.find(frames);
  if (found == stacks_.end()) {
    const auto index = static_cast<Index>(list_.size());
    list_.push_back({frames_.size(), frames.size(), weight});
    frames_.insert(frames_.end(), frames.begin(), frames.end());
    stacks_.insert(index);
    return;
  }
  std::uint64_t& sum = list_[*found].weight;
  if (__builtin_add_overflow(sum, weight, &sum))
    sum = std::numeric_limits<std::uint64_t>::max();
}

void StackCounts::write_to(folded::FoldedCounts& counts, const FrameTexts& texts,
                           std::uint64_t unit) const {
  std::string text;
  for (Index index = 0; index < list_.size(); ++index) {
    text.clear();
    for (const FrameId frame : frames_of(index)) {
      if (!text.empty())
        text += ';';
      text += texts[frame];
    }
    const std::uint64_t weight = list_[index].weight;
    counts.add(text, {.whole = weight / unit +
                               (unit > 1 && weight % unit >= unit - weight % unit ? 1 : 0)});
  }
}

}  // namespace pe::fold
