// Formats counts for tooltips.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "folded/count.h"

namespace pe::picture {

/// Returns the count times `factor`, rounded, with its digits in groups of three: "1,234".
std::string grouped_count(folded::Count count, double factor);

}  // namespace pe::picture
