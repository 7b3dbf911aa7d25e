// Folds by names without build details (folded/build_details.h): of all stacks, or of a merge of
// sorted text.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/cli/run.h"
#include "base/io/input.h"
#include "base/io/output.h"
#include "folded/folded_line.h"
#include "folded/folded_reader.h"
#include "stackfold/folded_counts.h"
#include "stackfold/options.h"

// Implements stackfold --merge-sorted.

// Merges sorted folded text from any number of inputs in constant memory.
//
// This serves text that exceeds memory.  stackfold writes its output in order, so the output of
// many machines or hours can be added up line by line.

namespace pe::folded {

/// The totals that a merge has read and written so far.
struct MergeTotals {
  std::uint64_t lines = 0;   ///< well-formed lines
  std::uint64_t stacks = 0;  ///< stacks returned
  Count read;                ///< sum of all lines; Count::max() if it does not fit
  Count written;             ///< sum of all stacks, likewise; equals `read` unless counts were lost
};

class SortedMerge {
 public:
  /// Each input must be in the order of OrderedStacks.  Throws Error if one cannot be read.
  explicit SortedMerge(std::vector<Input> inputs);

  /// Returns the next stack with its count over all inputs, or nullopt after the last.  The view is
  /// valid until the next call.  A line out of order is returned when the merge reads it.  Its
  /// stack may thus be returned in several parts, and the result is out of order as well.
  std::optional<FoldedLine> next();

  [[nodiscard]] bool saturated() const noexcept { return saturated_; }  ///< did a sum not fit?
  [[nodiscard]] std::uint64_t out_of_order() const noexcept { return out_of_order_; }
  /// Returns "FILE:LINE" of the first line out of order.
  [[nodiscard]] const std::string& first_out_of_order() const noexcept { return first_; }
  [[nodiscard]] const MergeTotals& totals() const noexcept { return totals_; }

  /// Visits each input, which reports its skipped lines and whether it was cut.
  template <typename Visit>
  void visit_inputs(Visit&& visit) const {
    for (const auto& source : sources_)
      visit(source->reader, source->is_any);
  }

 private:
  struct Source {
    explicit Source(Input input) : reader(std::move(input)) {}
    FoldedReader reader;
    FoldedLine line;      ///< the current line
    bool is_any = false;  ///< was there a well-formed line?
  };

  bool advance(Source& source);

  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Source*> heap_;  ///< sources with a line, the least first
  std::string stack_;          ///< of the line that was returned last
  std::uint64_t out_of_order_ = 0;
  std::string first_;
  bool saturated_ = false;
  MergeTotals totals_;
};

}  // namespace pe::folded

namespace pe::fold {

/// Merges sorted folded text, writes the result, and reports problems in the inputs; with
/// Options::with_stats also their size.  False if lines were out of order, an input was cut, or an
/// input is not folded text.
bool merge_sorted(std::vector<Input> inputs, const Options& options, Io& io);

/// Remembers the new names of frames, because finding one takes some microseconds.
class StrippedNames {
 public:
  /// The view is valid until the next call.
  std::string_view of(std::string_view frame);
  /// Returns the stack of these frames; the view is valid until the next call.
  std::string_view of_stack(std::string_view stack);

 private:
  std::unordered_map<std::string, std::string> known_;
  std::string frame_, stack_;
};

struct StrippedMerge {
  folded::MergeTotals totals;  ///< read from the inputs, and written
  bool saturated = false;      ///< did a sum of equal names not fit?
};

/// Writes the stacks of `merge` in order, with their new names.  New names have another order.  So
/// this sorts them, in parts of bounded memory, which go to files in TMPDIR if there are several.
/// Throws Error.
StrippedMerge write_stripped(folded::SortedMerge& merge, Output& out);

}  // namespace pe::fold
