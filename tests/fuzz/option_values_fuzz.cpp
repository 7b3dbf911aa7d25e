// Parses any text as the value of an option.  An accepted value is within its bounds, and parses to
// the same value when written in its plainest form.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/parse_number.h"
#include "folded/count.h"
#include "fuzz/require.h"
#include "malloctrace/options.h"
#include "recording/target_options.h"
#include "stackfold/options.h"

using pe::testing::require;

namespace {

void check_numbers(std::string_view text) {
  if (const auto bytes = pe::parse_bytes(text))
    require(*bytes <= std::uint64_t{1} << 40U && pe::parse_bytes(std::to_string(*bytes)) == bytes);
  const auto decimal = pe::parse_decimal(text);
  if (decimal)
    require(*decimal >= 0 && text.find_first_not_of("0123456789.") == text.npos);
  const auto count = pe::folded::parse_count(text);
  if (count)
    require(pe::folded::parse_count(pe::folded::to_text(*count)) == count);
  // If both parsers accept the text, they agree, except for decimals that a double or a count
  // cannot hold.
  if (count && decimal)
    require(*decimal >= count->as_double() * (1 - 1e-9) - 1e-9 &&
            *decimal <= count->as_double() * (1 + 1e-9) + 2e-9);
}

void check_times(std::string_view text) {
  if (const auto ns = pe::parse_duration_ns(text))
    require(pe::parse_duration_ns(std::to_string(*ns) + "ns") == ns);
  if (const auto us = pe::stream::parse_seconds_us(text)) {
    std::string fraction = std::to_string(*us % 1'000'000);
    fraction.insert(0, 6 - fraction.size(), '0');
    require(pe::stream::parse_seconds_us(std::to_string(*us / 1'000'000) + "." + fraction) == us);
  }
  try {
    const pe::stream::ClockData clock{.wall_ns = 1'780'000'000'000'000'000, .clock_ns = 5};
    const auto bounds =
        pe::stream::parse_time_range(text).in({.first_us = 7, .last_us = 9, .clock = clock});
    require(bounds.holds(bounds.from_us) && bounds.holds(bounds.to_us));
  } catch (const pe::Error&) {
    return;  // not a range of times, or its end is before its start
  }
}

void check_lists(const std::string& text) {
  const auto parts = pe::recording::split_list(text);
  std::string joined;
  for (const std::string& part : parts)
    joined += (&part == parts.data() ? "" : ",") + part;
  require(joined == text);
  const auto cpus = pe::recording::parse_cpu_list(text);
  if (!cpus)
    return;
  require(std::all_of(cpus->begin(), cpus->end(), [](int cpu) { return cpu >= 0; }));
  std::string plain;
  for (const int cpu : *cpus)
    plain += (plain.empty() ? "" : ",") + std::to_string(cpu);
  require(pe::recording::parse_cpu_list(plain) == cpus);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  constexpr std::size_t kMostBytes = 256;  // a list of CPUs is as long as its ranges
  if (size > kMostBytes)
    return 0;
  check_numbers({data, size});
  check_times({data, size});
  check_lists({data, size});
  return 0;
}
