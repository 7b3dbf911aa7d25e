// pe-symbolize: adds symbols to a sample stream.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe {

extern const Tool kPeSymbolize;

}  // namespace pe
