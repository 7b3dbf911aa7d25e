// SPDX-License-Identifier: MIT
#include "painting/numbers.h"

#include <fmt/format.h>

#include <cmath>

namespace pe::painting {
namespace {

std::string in_groups(std::string digits) {
  for (std::size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace

std::string grouped_digits(double number) { return in_groups(fmt::format("{:.0f}", number)); }

std::string grouped_count(folded::Count count, double factor) {
  constexpr double kSmall = 10;
  const double value = count.as_double() * factor;
  if (value <= 0 || value >= kSmall || value == std::floor(value))
    return count.billionths == 0 && factor == 1 ? in_groups(fmt::format("{}", count.whole))
                                                : grouped_digits(value);
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(value)));
  std::string digits = fmt::format("{:.{}f}", value, decimals);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.'))
    digits.pop_back();
  return digits;
}

}  // namespace pe::painting
