// flamesvg: draws folded stacks as an interactive SVG flame graph.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kFlamesvg;

/// Runs the whole tool, for tests.  `args`: without argv[0].  Returns the exit status.
int flamesvg_main(std::span<const std::string> args, Io& io);

}  // namespace pe
