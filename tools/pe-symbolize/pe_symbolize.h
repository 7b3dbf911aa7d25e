// pe-symbolize: adds symbols to a sample stream.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "base/cli/run.h"

namespace pe {

extern const Tool kPeSymbolize;

/// Runs the whole tool in this process.
int pe_symbolize_main(std::span<const std::string> args, Io& io);

}  // namespace pe
