// pe-record: samples call chains of running programs.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"

namespace pe {

extern const Tool kPeRecord;

}  // namespace pe
