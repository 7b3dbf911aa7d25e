// Prints the table of functions whose share, or cost per unit of work, changed.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/output.h"
#include "flamediff/comparison.h"
#include "flamediff/options.h"

namespace pe::flamediff {

/// Writes the functions that changed beyond noise, or all with Options::shows_noise, and a line
/// about the others.  Writes all if noise is not known.
void write_table(const painting::CallTree& tree, const Comparison& comparison,
                 const Options& options, Output& out);

}  // namespace pe::flamediff
