// Prints lines "stack before after" like difffolded.pl, sorted by stack.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "flamediff/options.h"
#include "flamediff/target.h"

namespace pe::flamediff {

/// Reads the files of `options`, writes to `target`, and reports skipped lines on io.err.
/// Throws Error.
void write_folded(const Options& options, Io& io, Target& target);

}  // namespace pe::flamediff
