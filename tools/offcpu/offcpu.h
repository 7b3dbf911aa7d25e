// offcpu records where threads wait, with whole stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kOffcpu;

/// Runs the whole tool in this process.
int offcpu_main(std::span<const std::string> args, Io& io);

}  // namespace pe
