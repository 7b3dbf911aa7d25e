// Adds up folded stacks: equal stacks become one line.
//
// A stack is stored as a list of frame numbers and becomes text when it is
// written.  A recording has a few thousand frames but a hundred megabytes of
// stacks; hashing and comparing their texts took most of stackfold's time.
// Cost: 120 ns to add a stack of 23 frames that is one of 10,000 known stacks.
//
// With a timeline, the counts are also divided by time.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash_bytes.h"
#include "base/io/output.h"
#include "base/string_arena.h"
#include "folded/folded_line.h"
#include "stackfold/timeline.h"

namespace pe::folded {

// Stores each frame text once and numbers it.

using FrameId = std::uint32_t;

/// Numbers new texts in the order in which they arrive, from 0.
class FrameTable {
 public:
  /// Returns the number of `text`, which must hold no ';'.  Copies the text if it is new.
  FrameId intern(std::string_view text) {
    const auto found = ids_.find(text);
    if (found != ids_.end())
      return found->second;
    const std::string_view kept = arena_.store(text);
    const auto id = static_cast<FrameId>(texts_.size());
    texts_.push_back(kept);
    ids_.emplace(kept, id);
    return id;
  }
  /// Returns a view that lives as long as the table.
  [[nodiscard]] std::string_view operator[](FrameId id) const { return texts_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return texts_.size(); }

 private:
  StringArena arena_;
  std::vector<std::string_view> texts_;
  boost::unordered_flat_map<std::string_view, FrameId, HashBytes> ids_;
};

/// Maps each stack to the sum of its counts.
class FoldedCounts {
 public:
  /// `frames` numbers the frames and must outlive this; several FoldedCounts may share it.
  explicit FoldedCounts(FrameTable& frames)
      : frame_table_(frames), index_(0, Hash{this}, Equal{this}) {}
  FoldedCounts(const FoldedCounts&) = delete;  // the set's functions refer to this
  FoldedCounts& operator=(const FoldedCounts&) = delete;
  FoldedCounts(FoldedCounts&&) = delete;
  FoldedCounts& operator=(FoldedCounts&&) = delete;
  ~FoldedCounts() = default;

  /// Adds to the stack `frames`, root first.  A sum that does not fit stays at Count::max().
  /// Returns the stack's number: stacks are numbered in the order of their first add(), from 0.
  StackId add(std::span<const FrameId> frames, Count count);
  /// Does the same for frames joined by ';'.  Keeps a copy of each new frame.
  void add(std::string_view stack, Count count);
  /// As add(); a timeline also counts it in the step of this time, which it has noted.
  void add_at(std::uint64_t time_ns, std::span<const FrameId> frames, Count count);
  /// Adds the time between two times, which the timeline has noted, to the steps that it covers.
  /// There must be a timeline.
  void add_span(std::uint64_t begin_ns, std::uint64_t end_ns, std::span<const FrameId> frames);
  /// As Timeline::note(), if there is a timeline.
  void note_time(std::uint64_t begin_ns, std::uint64_t end_ns) {
    if (timeline_)
      timeline_->note(begin_ns, end_ns);
  }
  /// Adds every stack of `other`, which shares the frame table, with its count divided by
  /// `divisor`.  The quotient is rounded to a whole number unless it is below 1/2.
  void add_divided(const FoldedCounts& other, std::uint64_t divisor);
  /// Adds a count that may exceed 64 bits.  The sum is then a floating-point number, as in perl,
  /// and is written in its form: "1e+23".
  void add_large(std::span<const FrameId> frames, double count);

  void set_timeline(Timeline timeline);
  /// Returns nullptr if there is none.
  [[nodiscard]] Timeline* timeline() noexcept { return timeline_ ? &*timeline_ : nullptr; }

  [[nodiscard]] FrameTable& frames() const noexcept { return frame_table_; }
  [[nodiscard]] std::size_t size() const noexcept { return stacks_.size(); }
  [[nodiscard]] bool empty() const noexcept { return stacks_.empty(); }
  /// From now on, a sum that does not fit becomes a large one, instead of staying at Count::max().
  void keep_large() noexcept { keeps_large_ = true; }
  /// Did a sum not fit?
  [[nodiscard]] bool saturated() const noexcept { return saturated_; }

  /// Calls `visit(frames, count)` for every stack, root first, in the order of their numbers.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Stack& stack : stacks_)
      visit(frames_in(stack), stack.count);
  }

  /// Returns the frames of a stack, root first, by its number.  The next add() invalidates the
  /// view.
  [[nodiscard]] std::span<const FrameId> frames_of(StackId stack) const {
    return frames_in(stacks_[stack]);
  }

  /// Writes every stack once as a folded line, in bytewise order of the stacks.  With a timeline,
  /// writes it in each step that has it, with the step as root frame.
  void write(Output& out);

 private:
  using Index = StackId;  ///< in stacks_
  using Frames = std::span<const FrameId>;
  struct Stack {
    std::size_t begin, size;  ///< in frames_
    std::size_t hash;
    Count count;
  };
  struct Key {
    Frames frames;
    std::size_t hash;
  };
  struct Hash {
    using is_transparent = void;
    const FoldedCounts* owner;
    std::size_t operator()(Index index) const { return owner->stacks_[index].hash; }
    std::size_t operator()(const Key& key) const { return key.hash; }
  };
  struct Equal {
    using is_transparent = void;
    const FoldedCounts* owner;
    bool operator()(Index a, Index b) const { return a == b; }
    bool operator()(const Key& key, Index index) const;
    bool operator()(Index index, const Key& key) const { return (*this)(key, index); }
  };

  void add_to(StackId stack, Count count);
  [[nodiscard]] Frames frames_in(const Stack& stack) const {
    return Frames(frames_).subspan(stack.begin, stack.size);
  }
  [[nodiscard]] std::vector<Index> sorted() const;

  FrameTable& frame_table_;
  std::vector<FrameId> frames_;  ///< of all stacks, one after the other
  std::vector<Stack> stacks_;
  boost::unordered_flat_set<Index, Hash, Equal> index_;
  std::vector<FrameId> split_;  ///< the frames of the text being added
  bool saturated_ = false;
  bool keeps_large_ = false;
  std::unordered_map<StackId, double> large_;  ///< sums that exceed 64 bits
  std::optional<Timeline> timeline_;
};

}  // namespace pe::folded
