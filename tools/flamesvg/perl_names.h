// The script that flamesvg stands in for.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "cli/getopt_long.h"
#include "svg/page.h"

namespace pe::flamesvg {

extern const std::span<const cli::PerlName> kPerlNames;

/// flamegraph.pl copies its texts into the file, so the scripts that call it escape them: gives
/// characters for references to them.
void unescape_texts(svg::PageStyle& page);

}  // namespace pe::flamesvg
