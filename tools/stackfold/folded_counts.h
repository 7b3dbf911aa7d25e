// Adds up folded stacks: equal stacks become one line.
//
// A stack is a path of frame numbers in a tree and becomes text when it is
// written.  A recording has a few thousand frames but a hundred megabytes of
// stacks, and most share their callers with others.
//
// With a timeline, the counts are also divided by time.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

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
#include "painting/tree/growing_array.h"
#include "painting/tree/stack_path.h"
#include "painting/tree/stack_tree.h"
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
  explicit FoldedCounts(FrameTable& frames) : frame_table_(frames) {}

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
  [[nodiscard]] std::size_t size() const noexcept { return counts_.size(); }
  [[nodiscard]] bool empty() const noexcept { return counts_.empty(); }
  /// From now on, a sum that does not fit becomes a large one, instead of staying at Count::max().
  void keep_large() noexcept { keeps_large_ = true; }
  /// Did a sum not fit?
  [[nodiscard]] bool saturated() const noexcept { return saturated_; }

  /// Calls `visit(frames, count)` for every stack, root first, in the order of their numbers.  The
  /// frames are valid during the call.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    std::vector<FrameId> frames;
    for (StackId stack = 0; stack < counts_.size(); ++stack) {
      copy_frames(stack, frames);
      visit(std::span<const FrameId>(frames), counts_[stack]);
    }
  }

  /// Replaces `frames` by the frames of a stack, root first, by its number.
  void copy_frames(StackId stack, std::vector<FrameId>& frames) const {
    tree_.copy_stack(ends_[stack], frames);
  }
  /// By the numbers of stacks.
  [[nodiscard]] std::span<const Count> counts() const noexcept { return counts_.all(); }

  /// Writes every stack once as a folded line, in bytewise order of the stacks.  With a timeline,
  /// writes it in each step that has it, with the step as root frame.
  void write(Output& out);

 private:
  using Frames = std::span<const FrameId>;
  using Node = painting::StackTree::Node;

  void add_to(StackId stack, Count count);
  template <typename Visit>
  void visit_sorted(Visit&& visit);

  FrameTable& frame_table_;
  painting::StackTree tree_;
  painting::GrowingArray<Count> counts_;
  painting::GrowingArray<Node> ends_;         ///< the node in which each stack ends
  painting::GrowingArray<StackId> stack_of_;  ///< by node; kNoStack if none ends in it
  painting::StackPath text_;                  ///< the text added last
  bool saturated_ = false;
  bool keeps_large_ = false;
  std::unordered_map<StackId, double> large_;  ///< sums that exceed 64 bits
  std::optional<Timeline> timeline_;
};

}  // namespace pe::folded
