// Applies --include and --exclude to a profile.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "stackfold/exports/profile.h"
#include "stackfold/options.h"

namespace pe::fold::exports {

/// Keeps only samples with a frame that matches --include and none that matches --exclude.  Returns
/// the number of removed sums.  Throws UsageError if a regular expression is invalid.
std::size_t choose(const Options& options, Profile& profile);

}  // namespace pe::fold::exports
