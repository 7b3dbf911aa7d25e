// malloctrace: who allocates memory, who leaks it, what the peak was made of.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "cli/run.h"

namespace pe {

extern const cli::Tool kMalloctrace;

/// The whole tool, in this process.
int malloctrace_main(std::span<const std::string> args, cli::Io& io);

}  // namespace pe
