// malloctrace reports the code that allocates memory, the code that leaks it, and the contents of
// the peak.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kMalloctrace;

/// Runs the whole tool in this process.
int malloctrace_main(std::span<const std::string> args, Io& io);

}  // namespace pe
