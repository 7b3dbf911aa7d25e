// Applies --recursive, --strip-names, --include and --exclude to the folded stacks of any input.
//
// It checks each distinct stack once, after all input is read, so a sample costs nothing extra.
// Until that point, excluded stacks stay in memory.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "folded/build_details.h"
#include "stackfold/folded_counts.h"
#include "stackfold/options.h"

// Finds frames whose text matches one of several regular expressions.
//
// Each frame is matched only once, even if it is in many stacks.

namespace pe::folded {

class FramePattern {
 public:
  /// Matches a frame if any of `expressions` matches anywhere in its text; without expressions,
  /// never.  Throws UsageError("--include: ...") for option "include".
  FramePattern(const std::string& option, std::span<const std::string> expressions);

  [[nodiscard]] bool is_empty() const noexcept { return expressions_.empty(); }
  /// Does the text of `frame` match?  All calls must use the same table.
  bool matches(FrameId frame, const FrameTable& table);
  bool matches_any(std::span<const FrameId> frames, const FrameTable& table);

 private:
  enum class Known : std::uint8_t { kNo, kYes, kNotYet };

  std::vector<Expression> expressions_;
  std::vector<Known> known_;  ///< by FrameId
};

}  // namespace pe::folded

namespace pe::fold {

/// The stacks that were left out, for the closing line.
struct LeftOut {
  std::uint64_t stacks = 0;  ///< number of distinct stacks
  folded::Count count;
  folded::Count of;  ///< the total count of all stacks
};

class Refiner {
 public:
  /// Throws UsageError if a regular expression is invalid.
  explicit Refiner(const Options& options);

  /// Would apply() change nothing?
  [[nodiscard]] bool is_idle() const noexcept {
    return !is_recursive_ && !strips_names_ && include_.is_empty() && exclude_.is_empty();
  }
  /// Matches the patterns with names before they are stripped.  Adds the stacks of `from` that are
  /// kept to `to`, which has the same frame table. Moves the timeline.
  LeftOut apply(folded::FoldedCounts& from, folded::FoldedCounts& to);

 private:
  bool is_recursive_, strips_names_;
  folded::FramePattern include_, exclude_;
};

}  // namespace pe::fold
