// A profiler's call tree as text: each line is a function below its caller, with its own weight.
//
// Some profilers print the depth as a number.  So depth is limited: otherwise a small input could
// make stackfold allocate much memory.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "stackfold/folded_counts.h"

namespace pe::fold {

class CallTree {
 public:
  /// `counts` must outlive this.
  explicit CallTree(folded::FoldedCounts& counts) : counts_(counts) {}

  /// Adds the function of the next line; a root has depth 0.  Ignores the line and returns false if
  /// it is too deep, or more than one level below the previous line.
  bool enter(std::size_t depth, std::string_view name);

  /// Returns the stack from the root to the function entered last.
  [[nodiscard]] std::span<const folded::FrameId> stack() const noexcept { return stack_; }

 private:
  folded::FoldedCounts& counts_;
  std::vector<folded::FrameId> stack_;
};

}  // namespace pe::fold
