// SPDX-License-Identifier: MIT
#include "folded/count.h"

#include <fmt/format.h>

#include <iterator>

#include "base/parse_number.h"

namespace pe::folded {
namespace {

/// Converts the digits after the point to billionths; nullopt if one is not a digit.
std::optional<std::uint32_t> parse_fraction(std::string_view digits) {
  std::uint32_t value = 0;
  std::uint32_t place = Count::kOne;
  for (const char c : digits) {
    if (c < '0' || c > '9')
      return std::nullopt;
    place /= 10;  // 0 from the tenth digit on
    value += static_cast<std::uint32_t>(c - '0') * place;
  }
  return value;
}

}  // namespace

std::optional<Count> parse_count(std::string_view text) {
  const auto point = text.find('.');
  const auto whole = parse_number<std::uint64_t>(text.substr(0, point));
  if (!whole)
    return std::nullopt;
  if (point == std::string_view::npos)
    return Count{.whole = *whole};
  const auto fraction = parse_fraction(text.substr(point + 1));
  if (!fraction)
    return std::nullopt;
  return Count{.whole = *whole, .billionths = *fraction};
}

std::optional<Count> times(Count count, std::uint64_t factor) {
  const std::uint64_t fractions = count.billionths;
  std::uint64_t billionths = 0;
  Count product;
  if (__builtin_mul_overflow(count.whole, factor, &product.whole) ||
      __builtin_mul_overflow(fractions, factor, &billionths) ||
      __builtin_add_overflow(product.whole, billionths / Count::kOne, &product.whole))
    return std::nullopt;
  product.billionths = static_cast<std::uint32_t>(billionths % Count::kOne);
  return product;
}

void append_count(std::string& out, Count count) {
  fmt::format_to(std::back_inserter(out), "{}", count.whole);
  if (count.billionths == 0)
    return;
  fmt::format_to(std::back_inserter(out), ".{:09}", count.billionths);
  out.erase(out.find_last_not_of('0') + 1);
}

}  // namespace pe::folded
