// stacktop: prints tables of the hot spots in folded stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe {

extern const Tool kStacktop;

}  // namespace pe
