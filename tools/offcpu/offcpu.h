// offcpu: where threads wait, with whole stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "cli/run.h"

namespace pe {

extern const cli::Tool kOffcpu;

/// The whole tool, in this process.
int offcpu_main(std::span<const std::string> args, cli::Io& io);

}  // namespace pe
