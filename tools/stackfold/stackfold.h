// stackfold: converts stacks in any known format to folded text.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kStackfold;

/// Runs the whole tool in this process.
int stackfold_main(std::span<const std::string> args, Io& io);

}  // namespace pe
