// The architecture whose stacks are walked.  One pair of files holds everything that depends on it.
// Another architecture needs another pair with the same identifiers.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/x86_64.h"

namespace pe::unwind {

namespace architecture = x86_64;

}  // namespace pe::unwind
