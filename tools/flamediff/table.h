// Functions that changed, as text; and those that grew too much.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/output.h"
#include "flamediff/comparison.h"
#include "flamediff/options.h"
#include "picture/tree/call_tree.h"

namespace pe::flamediff {

void write_table(const picture::CallTree& tree, const Comparison& comparison,
                 const Options& options, Output& out);

/// Names on `err` each function whose share, with all that it calls, grew by more than
/// options.fail_over percent of the whole, beyond noise; false if there is none.  Then it says how
/// many grew as much and not beyond noise, and which of them most.  Noise must be known.
bool report_grown(const picture::CallTree& tree, const Comparison& comparison,
                  const Options& options, Output& err);

}  // namespace pe::flamediff
