// offcpu: where threads wait, with whole stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kOffcpu;

/// The whole tool, in this process.
int offcpu_main(std::span<const std::string> args, Io& io);

}  // namespace pe
