// One stack as a text shows it, leaf first, until its count is known.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include "folded/folded_counts.h"

namespace pe::fold {

class StackBuilder {
 public:
  /// `counts` must outlive this.
  explicit StackBuilder(folded::FoldedCounts& counts) : counts_(counts) {}

  /// The next frame towards the root, made fit for folded text; with `mark` behind it.
  void add_caller(std::string_view name, std::string_view mark = {});
  /// A frame below all of those: the first added is the root.
  void add_root(std::string_view name);
  /// Gives every caller that was added since the last call `mark` too.
  void mark_callers(std::string_view mark);
  /// The callers added before the last `count` go below those `count`.
  void rotate_callers(std::size_t count);

  /// Adds the stack to the counts and forgets it.  One without frames is "[unknown]".
  void count(std::uint64_t weight);
  void clear();

  [[nodiscard]] std::size_t callers() const noexcept { return leaf_first_.size(); }
  [[nodiscard]] bool empty() const noexcept { return leaf_first_.empty() && roots_.empty(); }

 private:
  folded::FrameId intern(std::string_view name, std::string_view mark);

  folded::FoldedCounts& counts_;
  std::vector<folded::FrameId> roots_;
  std::vector<folded::FrameId> leaf_first_;
  std::size_t marked_ = 0;  ///< callers that mark_callers() has seen
  std::vector<folded::FrameId> stack_;
};

}  // namespace pe::fold
