// flamediff: shows the differences of two profiles as a flame graph, a table, folded text or an
// exit status, and which of them are more than noise.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kFlamediff;

/// Runs the whole tool, for tests.  `args`: without argv[0].  Returns the exit status.
int flamediff_main(std::span<const std::string> args, Io& io);

}  // namespace pe
