// The architecture whose stacks are walked.  All that depends on it stands in one pair of files;
// another architecture is another pair with the same names.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/x86_64.h"

namespace pe::unwind {

namespace architecture = x86_64;

}  // namespace pe::unwind
