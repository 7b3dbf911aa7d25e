// "stack before after": what difffolded.pl prints, in order of the stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "flamediff/options.h"
#include "flamediff/target.h"

namespace pe::flamediff {

/// Reads the files of `options`, and writes to `target`; what was stepped over is told on io.err.
/// Throws Error.
void write_folded(const Options& options, Io& io, Target& target);

}  // namespace pe::flamediff
