// The script that flamesvg stands in for.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "base/cli/getopt_long.h"
#include "picture/svg/page.h"

namespace pe::flamesvg {

extern const std::span<const PerlName> kPerlNames;

/// flamegraph.pl copies its texts into the file, so the scripts that call it escape them: gives
/// characters for references to them.
void unescape_texts(picture::PageStyle& page);

}  // namespace pe::flamesvg
