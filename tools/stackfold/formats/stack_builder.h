// Collects one stack of a text, leaf first, until its count is known.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include "stackfold/folded_counts.h"

namespace pe::fold {

class StackBuilder {
 public:
  /// `counts` must outlive this.
  explicit StackBuilder(folded::FoldedCounts& counts) : counts_(counts) {}

  /// Adds the next frame towards the root: the name, cleaned for folded text, and `mark`.
  void add_caller(std::string_view name, std::string_view mark = {});
  /// Adds a frame below all callers: the first one added is the root.
  void add_root(std::string_view name);
  /// Appends `mark` to every caller added since the last call.
  void mark_callers(std::string_view mark);
  /// Moves the last `count` callers to the leaf's end, above those added before.
  void rotate_callers(std::size_t count);

  /// Adds the stack to the counts and clears it.  A stack without frames becomes "[unknown]".  With
  /// a timeline, `time_ns` is a noted time.
  void count(std::uint64_t weight, std::uint64_t time_ns = 0);
  void clear();

  [[nodiscard]] std::size_t callers() const noexcept { return leaf_first_.size(); }
  [[nodiscard]] bool empty() const noexcept { return leaf_first_.empty() && roots_.empty(); }

 private:
  folded::FrameId intern(std::string_view name, std::string_view mark);

  folded::FoldedCounts& counts_;
  std::vector<folded::FrameId> roots_;
  std::vector<folded::FrameId> leaf_first_;
  std::size_t marked_ = 0;  ///< callers that mark_callers() has handled
  std::vector<folded::FrameId> stack_;
};

}  // namespace pe::fold
