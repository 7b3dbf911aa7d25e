// A profiler's call tree as text: each line is a function below its caller, with its own weight.
//
// Some profilers print the depth as a number.  So depth is limited: otherwise a small input could
// make stackfold allocate much memory.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
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

// Reads one line of comma-separated values: "a","b ""c""",3
//
// Source: RFC 4180, except that a field cannot contain a line end: the supported tools print none.

/// Returns the fields without quotes and surrounding blanks; nullopt if quotes do not match.  If
/// the line ends with a comma, the last field is empty.
std::optional<std::vector<std::string>> split_csv(std::string_view line);

/// Returns the index of the column with that name; nullopt if there is none.
std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name);

}  // namespace pe::fold
