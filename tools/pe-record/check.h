// pe-record --check: what can be recorded here.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe::recorder {

/// Writes a line for each thing that matters, and which engine would be taken; returns the status:
/// 1 if there is none.  Throws UsageError if a target is named, too.
int check(const CommandLine& line, Io& io);

}  // namespace pe::recorder
