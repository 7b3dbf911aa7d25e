// pe-record: samples call chains of running programs.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kPeRecord;

/// Runs the whole tool in this process.
int pe_record_main(std::span<const std::string> args, Io& io);

}  // namespace pe
