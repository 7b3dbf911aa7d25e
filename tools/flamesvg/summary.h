// A profile in a few sentences: for screen readers, search engines and whoever
// reads the file as text.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "flamesvg/options.h"
#include "picture/tree/call_tree.h"

namespace pe::flamesvg {

/// How much was counted, and the functions with the largest shares: of their
/// own, and together with what they called (a recursive function counts once).
/// `whole` is 100 %.
std::string summary_text(const picture::CallTree& tree, folded::Count whole,
                         const Options& options);

}  // namespace pe::flamesvg
