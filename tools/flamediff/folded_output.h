// Prints lines "stack before after" like difffolded.pl, sorted by stack.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "flamediff/options.h"

namespace pe::flamediff {

/// Reads the files of `options`, writes to io.out, and reports skipped lines.  Throws
/// Error.
void write_folded(const Options& options, Io& io);

}  // namespace pe::flamediff
