// stackfold --merge-sorted.
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "base/cli/run.h"
#include "base/io/input.h"

namespace pe::fold {

/// Writes folded text that is sorted, and says what was wrong with it; with `with_stats` also how
/// much it was.  False if it was not all in order, an input was cut, or one is no folded text.
bool merge_sorted(std::vector<Input> inputs, bool with_stats, Io& io);

}  // namespace pe::fold
