// Changes as people read them.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "flamediff/comparison.h"

namespace pe::flamediff {

/// "12.34%" of 0.1234.
std::string percent(double share);
/// "+12.34%".
std::string signed_percent(double share);
/// Of a comparison that does not know its noise.
std::string_view why_noise_is_unknown(const Comparison& comparison);

}  // namespace pe::flamediff
