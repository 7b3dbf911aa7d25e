// SPDX-License-Identifier: MIT
#include "picture/numbers.h"

#include <fmt/format.h>

#include <cmath>

namespace pe::picture {

std::string rounded_count(folded::Count count, double factor) {
  const bool is_exact = count.billionths == 0 && factor == 1;
  std::string digits =
      is_exact ? fmt::format("{}", count.whole) : fmt::format("{:.0f}", count.as_double() * factor);
  for (std::size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, 1, ',');
  return digits;
}

std::string grouped_count(folded::Count count, double factor) {
  constexpr double kSmall = 10;
  const double value = count.as_double() * factor;
  if (value <= 0 || value >= kSmall || value == std::floor(value))
    return rounded_count(count, factor);
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(value)));
  std::string digits = fmt::format("{:.{}f}", value, decimals);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.'))
    digits.pop_back();
  return digits;
}

}  // namespace pe::picture
