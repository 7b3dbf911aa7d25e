// A call tree that a profiler prints in lines, each function below its caller with its own weight.
//
// Some print the depth as a number, so that few bytes would stand for much memory if stacks could
// have any depth.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "folded/folded_counts.h"

namespace pe::fold {

class CallTree {
 public:
  /// `counts` must outlive this.
  explicit CallTree(folded::FoldedCounts& counts) : counts_(counts) {}

  /// The function of the next line; 0 is the depth of a root.  False, and the line is left out, if
  /// it is more than one level below the line before, or too deep.
  bool enter(std::size_t depth, std::string_view name);

  /// From the root to the function entered last.
  [[nodiscard]] std::span<const folded::FrameId> stack() const noexcept { return stack_; }

 private:
  folded::FoldedCounts& counts_;
  std::vector<folded::FrameId> stack_;
};

}  // namespace pe::fold
