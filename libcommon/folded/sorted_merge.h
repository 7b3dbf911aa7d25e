// Folded text that is sorted, from any number of inputs, merged in constant memory.
//
// For more text than memory holds: stackfold writes its output in order, so that of many machines
// or hours can be added up line by line.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/io/input.h"
#include "folded/folded_line.h"
#include "folded/folded_reader.h"

namespace pe::folded {

/// What a merge has read so far, and written.
struct MergeTotals {
  std::uint64_t lines = 0;   ///< well-formed ones
  std::uint64_t stacks = 0;  ///< handed out
  Count read;                ///< of all lines; at Count::max() if it does not fit
  Count written;             ///< of all stacks, likewise: the same, unless something was lost
};

class SortedMerge {
 public:
  /// Each input is in the order of StackOrder::kStacks.  Throws Error if one cannot be read.
  explicit SortedMerge(std::vector<Input> inputs);

  /// The next stack with its count over all inputs, or nullopt after the last.  The view dies with
  /// the next call.  A line that is out of order comes when it is met: then not all of its stack
  /// is in one, and what is handed out is out of order itself.
  std::optional<FoldedLine> next();

  [[nodiscard]] bool saturated() const noexcept { return saturated_; }  ///< did a sum not fit?
  [[nodiscard]] std::uint64_t out_of_order() const noexcept { return out_of_order_; }
  /// "FILE:LINE" of the first line that was.
  [[nodiscard]] const std::string& first_out_of_order() const noexcept { return first_; }
  [[nodiscard]] const MergeTotals& totals() const noexcept { return totals_; }

  /// Each input, for what it says of itself: what was stepped over, whether it was cut.
  template <typename Visit>
  void visit_inputs(Visit&& visit) const {
    for (const auto& source : sources_)
      visit(source->reader, source->is_any);
  }

 private:
  struct Source {
    explicit Source(Input input) : reader(std::move(input)) {}
    FoldedReader reader;
    FoldedLine line;      ///< the one at hand
    bool is_any = false;  ///< was there a well-formed line?
  };

  bool advance(Source& source);

  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Source*> heap_;  ///< those with a line, the least first
  std::string stack_;          ///< of the line that was handed out
  std::uint64_t out_of_order_ = 0;
  std::string first_;
  bool saturated_ = false;
  MergeTotals totals_;
};

}  // namespace pe::folded
