// What --recursive, --include and --exclude make of the folded stacks, whatever they came from.
//
// It looks at each distinct stack once, when all is read, so a sample costs nothing more;
// stacks that are left out have been kept in memory until then.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "folded/folded_counts.h"
#include "folded/frame_pattern.h"
#include "stackfold/options.h"

namespace pe::fold {

/// The stacks that were left out, for the closing line.
struct LeftOut {
  std::uint64_t stacks = 0;  ///< different ones
  folded::Count count;
  folded::Count of;  ///< the count of all
};

class Refiner {
 public:
  /// Throws UsageError if an expression is none.
  explicit Refiner(const Options& options);

  /// Would apply() change nothing?
  [[nodiscard]] bool is_idle() const noexcept {
    return !is_recursive_ && include_.is_empty() && exclude_.is_empty();
  }
  /// Adds to `to` what is left of `from`, which has the same frame table.
  LeftOut apply(const folded::FoldedCounts& from, folded::FoldedCounts& to);

 private:
  bool is_recursive_;
  folded::FramePattern include_, exclude_;
};

}  // namespace pe::fold
