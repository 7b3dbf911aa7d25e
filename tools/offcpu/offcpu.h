// offcpu records where threads wait, with whole stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe {

extern const Tool kOffcpu;

}  // namespace pe
