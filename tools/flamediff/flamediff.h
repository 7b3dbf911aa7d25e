// flamediff: shows the differences of two profiles as a flame graph, a table, folded text or an
// exit status, and which of them are more than noise.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe {

extern const Tool kFlamediff;

}  // namespace pe
