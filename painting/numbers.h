// Formats counts for tooltips.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "folded/count.h"

namespace pe::painting {

/// Returns the number, rounded as flamegraph.pl does, with its digits in groups of three: "1,234".
std::string grouped_digits(double number);

/// Returns the count times `factor` in the same form, but three digits of a fraction below 10:
/// "0.156", "2.37".
std::string grouped_count(folded::Count count, double factor);

}  // namespace pe::painting
