// SPDX-License-Identifier: MIT
#include "picture/numbers.h"

#include <fmt/format.h>

namespace pe::picture {

std::string grouped_count(folded::Count count, double factor) {
  const bool is_exact = count.billionths == 0 && factor == 1;
  std::string digits =
      is_exact ? fmt::format("{}", count.whole) : fmt::format("{:.0f}", count.as_double() * factor);
  for (std::size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace pe::picture
