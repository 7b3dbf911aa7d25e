// The script that flamediff replaces.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "base/cli/getopt_long.h"

namespace pe::flamediff {

extern const std::span<const PerlName> kPerlNames;

}  // namespace pe::flamediff
