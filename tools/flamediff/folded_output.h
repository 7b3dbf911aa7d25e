// Prints lines "stack before after" like difffolded.pl, sorted by stack.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "base/cli/getopt_long.h"
#include "base/cli/run.h"
#include "flamediff/options.h"

namespace pe::flamediff {

// The script that flamediff replaces: its options, and --folded --compat.

extern const std::span<const PerlName> kPerlNames;

/// Writes the lines of difffolded.pl, in bytewise order.  A line that is not a stack and its count
/// becomes a stack without frames.  Counts are those of perl (painting/numbers.h).
void write_as_perl(const Options& options, const Io& io);

/// Reads the files of `options`, writes to io.out, and reports skipped lines.  Throws
/// Error.
void write_folded(const Options& options, Io& io);

}  // namespace pe::flamediff
