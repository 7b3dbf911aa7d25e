// pe-symbolize: puts names into a sample stream.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "cli/run.h"

namespace pe {

extern const cli::Tool kPeSymbolize;

/// The whole tool, in this process.
int pe_symbolize_main(std::span<const std::string> args, cli::Io& io);

}  // namespace pe
