// malloctrace: who allocates memory, who leaks it, what the peak was made of.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kMalloctrace;

/// The whole tool, in this process.
int malloctrace_main(std::span<const std::string> args, Io& io);

}  // namespace pe
