// flamediff: what two profiles differ by, as a flame graph, a table, folded text or an exit status,
// and which differences are more than noise.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kFlamediff;

/// The whole tool, for tests: arguments without argv[0], exit status back.
int flamediff_main(std::span<const std::string> args, Io& io);

}  // namespace pe
