// stacktop: prints tables of the hot spots in folded stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kStacktop;

/// Runs the whole tool, for tests.  `args`: without argv[0].  Returns the exit status.
int stacktop_main(std::span<const std::string> args, Io& io);

}  // namespace pe
