// Implements stackfold --merge-sorted.
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "base/cli/run.h"
#include "base/io/input.h"
#include "stackfold/options.h"

namespace pe::fold {

/// Merges sorted folded text, writes the result, and reports problems in the inputs; with
/// Options::with_stats also their size.  False if lines were out of order, an input was cut, or an
/// input is not folded text.
bool merge_sorted(std::vector<Input> inputs, const Options& options, Io& io);

}  // namespace pe::fold
