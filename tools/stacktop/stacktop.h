// stacktop: tables of the hot spots in folded stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kStacktop;

/// The whole tool, for tests: arguments without argv[0], exit status back.
int stacktop_main(std::span<const std::string> args, Io& io);

}  // namespace pe
