// Prints functions that changed as tables, and reports functions that grew too much.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "base/io/output.h"
#include "flamediff/comparison.h"
#include "flamediff/options.h"
#include "picture/tree/call_tree.h"

namespace pe::flamediff {

void write_table(const picture::CallTree& tree, const Comparison& comparison,
                 const Options& options, Output& out);

/// Reports each function whose share, with its callees, grew beyond noise by more than
/// options.fail_over percent of the whole.  False if there is none; it then reports how many
/// grew as much within noise, and the one that grew most.  Noise must be known.
bool report_grown(const picture::CallTree& tree, const Comparison& comparison,
                  const Options& options, const Io& io);

}  // namespace pe::flamediff
