// stackfold --merge-sorted.
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "cli/run.h"
#include "io/input.h"

namespace pe::fold {

/// Writes folded text that is sorted, and says what was wrong with it.  False if it was not all in
/// order.
bool merge_sorted(std::vector<io::Input> inputs, cli::Io& io);

}  // namespace pe::fold
