// Lists events and probes (--list).
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe::recorder {

/// Prints the names that match the pattern of --list, one a line, sorted: of this machine's events,
/// of its tracepoints, and of the functions or static probes of a file ("uprobe:PATH:*").  A word
/// without * and ? matches names that contain it.  Returns the exit status.  Throws Error.
int list_events(const CommandLine& line, Io& io);

}  // namespace pe::recorder
