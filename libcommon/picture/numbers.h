// Counts as tooltips show them.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "folded/count.h"

namespace pe::picture {

/// The count times `factor`, rounded, its digits in groups of three: "1,234".
std::string grouped_count(folded::Count count, double factor);

}  // namespace pe::picture
