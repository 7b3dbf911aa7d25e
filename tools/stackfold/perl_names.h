// The scripts that stackfold stands in for.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "cli/getopt_long.h"

namespace pe::fold {

extern const std::span<const cli::PerlName> kPerlNames;

}  // namespace pe::fold
