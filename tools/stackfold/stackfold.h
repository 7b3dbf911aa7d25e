// stackfold: converts stacks in any known format to folded text.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe {

extern const Tool kStackfold;

}  // namespace pe
