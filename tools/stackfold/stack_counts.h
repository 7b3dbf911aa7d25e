// Stacks as lists of frame numbers, added up.
//
// Most samples repeat a stack that has been seen, so the cost of a sample is one
// hash over its frames and one comparison.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "folded/folded_counts.h"
#include "stackfold/frames.h"

namespace pe::fold {

class StackCounts {
 public:
  StackCounts() : stacks_(0, Hash{this}, Equal{this}) {}
  StackCounts(const StackCounts&) = delete;  // the set's functions refer to this
  StackCounts& operator=(const StackCounts&) = delete;
  StackCounts(StackCounts&&) = delete;
  StackCounts& operator=(StackCounts&&) = delete;
  ~StackCounts() = default;

  /// Adds `weight` to the stack `frames`, root first.  A sum that does not fit stays at the largest
  /// number.
  void add(std::span<const FrameId> frames, std::uint64_t weight);

  /// Hands every stack over as text, its weight divided by `unit` and rounded.
  void write_to(folded::FoldedCounts& counts, const FrameTexts& texts, std::uint64_t unit) const;

 private:
  struct Stack {
    std::size_t begin;
    std::size_t size;
    std::uint64_t weight;
  };
  using Index = std::uint32_t;  ///< in list_
  struct Hash {
    using is_transparent = void;
    const StackCounts* owner;
    std::size_t operator()(Index index) const { return (*this)(owner->frames_of(index)); }
    std::size_t operator()(std::span<const FrameId> frames) const;
  };
  struct Equal {
    using is_transparent = void;
    const StackCounts* owner;
    bool operator()(Index a, Index b) const { return a == b; }
    bool operator()(std::span<const FrameId> frames, Index index) const;
    bool operator()(Index index, std::span<const FrameId> frames) const {
      return (*this)(frames, index);
    }
  };
  [[nodiscard]] std::span<const FrameId> frames_of(Index index) const {
    return std::span(frames_).subspan(list_[index].begin, list_[index].size);
  }

  std::vector<FrameId> frames_;
  std::vector<Stack> list_;
  boost::unordered_flat_set<Index, Hash, Equal> stacks_;
};

}  // namespace pe::fold
