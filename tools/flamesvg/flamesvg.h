// flamesvg: draws folded stacks as an interactive SVG flame graph.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe {

extern const Tool kFlamesvg;

}  // namespace pe
