// Applies --include and --exclude to a profile.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/io/output.h"
#include "stackfold/exports/profile.h"
#include "stackfold/folded_counts.h"
#include "stackfold/options.h"

namespace pe::fold::exports {

/// Keeps only samples with a frame that matches --include and none that matches --exclude.  Returns
/// the number of removed sums.  Throws UsageError if a regular expression is invalid.
std::size_t choose(const Options& options, Profile& profile);

// Converts folded stacks to a profile for export.  The profile has names only.

/// The unit of counts in a profile, which holds whole numbers only.
struct FractionUnit {
  std::uint64_t in_one = 1;
  std::string_view name = "count";
  std::size_t rounded = 0;  ///< number of counts that are not whole even in this unit
};

/// Adds every stack with its count, for an event "samples".  Folded text has no times, so with
/// `with_times` also adds each stack as a sample, one millisecond after the previous one.  Counts
/// are in the returned unit.  They are rounded only if 63 bits cannot hold the sum in a finer one.
FractionUnit add_folded(const folded::FoldedCounts& counts, bool with_times, Profile& profile);

// The forms that stackfold --to writes, in one table that also provides its help.

struct Form {
  std::string_view name;  ///< the argument of --to
  bool is_binary;
  bool has_times;  ///< shows each sample at its time
  /// Viewers show `first_event` first; empty if events have no names.
  void (*write)(const Profile& profile, const std::string& first_event, Output& out);
};

/// Returns all forms.
std::span<const Form> forms();

}  // namespace pe::fold::exports
