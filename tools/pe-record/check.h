// pe-record --check: what can be recorded here.
// SPDX-License-Identifier: MIT
#pragma once

#include "cli/run.h"

namespace pe::record {

/// Writes a line for each thing that matters, and which engine would be taken; returns the status:
/// 1 if there is none.  Throws UsageError if a target is named, too.
int check(const cli::CommandLine& line, cli::Io& io);

}  // namespace pe::record
