// pe-record --check: prints which recordings are possible here.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe::recorder {

/// Writes a line for each ability that matters, and the engine that would be used.  Returns the
/// status: 1 if there is no engine.  Throws UsageError if there is also a target.
int check(const CommandLine& line, Io& io);

}  // namespace pe::recorder
