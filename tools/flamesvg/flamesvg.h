// flamesvg: draws folded stacks as an interactive SVG flame graph.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kFlamesvg;

/// The whole tool, for tests: arguments without argv[0], exit status back.
int flamesvg_main(std::span<const std::string> args, Io& io);

}  // namespace pe
