// The script that flamesvg stands in for.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "cli/getopt_long.h"

namespace pe::flamesvg {

extern const std::span<const cli::PerlName> kPerlNames;

}  // namespace pe::flamesvg
