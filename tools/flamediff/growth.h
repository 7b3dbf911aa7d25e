// The verdict of --fail-over.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "flamediff/comparison.h"
#include "flamediff/options.h"

namespace pe::flamediff {

/// Reports all that grew by more than --fail-over and by more than noise, largest first: functions,
/// and the cost of everything.  If there is none, reports the one that grew most by more than the
/// limit.  Returns whether there is any.
bool report_grown(const painting::CallTree& tree, const Comparison& comparison,
                  const Options& options, const Io& io);

}  // namespace pe::flamediff
