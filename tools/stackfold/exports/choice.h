// What --include and --exclude make of a profile.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "stackfold/exports/profile.h"
#include "stackfold/options.h"

namespace pe::fold::exports {

/// Keeps only what has a frame like one of --include and none like --exclude.  Returns how many
/// sums of samples were left out.  Throws UsageError if an expression is none.
std::size_t choose(const Options& options, Profile& profile);

}  // namespace pe::fold::exports
