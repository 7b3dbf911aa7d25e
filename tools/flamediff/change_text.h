// Formats changes for people.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "flamediff/comparison.h"

namespace pe::flamediff {

/// Formats 0.1234 as "12.34%".
std::string percent(double share);
/// Formats 0.1234 as "+12.34%".
std::string signed_percent(double share);
/// Returns why the noise of the comparison is not known.  Call it only if that is so.
std::string_view why_noise_is_unknown(const Comparison& comparison);

}  // namespace pe::flamediff
