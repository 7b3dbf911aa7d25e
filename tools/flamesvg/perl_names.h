// The script that flamesvg replaces.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "base/cli/getopt_long.h"
#include "picture/svg/page.h"

namespace pe::flamesvg {

extern const std::span<const PerlName> kPerlNames;

/// Replaces character references by characters.  flamegraph.pl copies its texts into the file, so
/// the scripts that call it escape them.
void unescape_texts(picture::PageStyle& page);

}  // namespace pe::flamesvg
