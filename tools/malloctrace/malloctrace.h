// malloctrace reports the code that allocates memory, the code that leaks it, and the contents of
// the peak.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe {

extern const Tool kMalloctrace;

}  // namespace pe
