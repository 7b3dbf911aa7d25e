// Folds by names without build details (folded/build_details.h): of all stacks, or of a merge of
// sorted text.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/io/output.h"
#include "stackfold/folded_counts.h"
#include "stackfold/merge_sorted.h"

namespace pe::fold {

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
