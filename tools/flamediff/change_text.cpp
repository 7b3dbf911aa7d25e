// SPDX-License-Identifier: MIT
#include "flamediff/change_text.h"

#include <fmt/format.h>

namespace pe::flamediff {

std::string percent(double share) { return fmt::format("{:.2f}%", 100 * share); }

std::string signed_percent(double share) {
  const std::string text = percent(share);
  if (text == "-0.00%")
    return "0.00%";
  return share > 0 && text != "0.00%" ? "+" + text : text;
}

std::string_view why_noise_is_unknown(const Comparison& comparison) {
  return comparison.has_empty_side() ? "one profile is empty"
                                     : "the counts do not look like samples";
}

}  // namespace pe::flamediff
