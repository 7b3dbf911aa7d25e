// Summarizes a profile in a few sentences, for screen readers, search engines and people who
// read the file as text.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "flamesvg/options.h"
#include "painting/tree/call_tree.h"

namespace pe::flamesvg {

/// Returns the total count and the functions with the largest shares: by their own counts, and
/// together with their callees (a recursive function counts once).
/// `whole` is 100 %.
std::string summary_text(const painting::CallTree& tree, folded::Count whole,
                         const Options& options);

}  // namespace pe::flamesvg
