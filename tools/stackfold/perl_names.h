// The Perl scripts that stackfold replaces.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "base/cli/getopt_long.h"

namespace pe::fold {

extern const std::span<const PerlName> kPerlNames;

}  // namespace pe::fold
