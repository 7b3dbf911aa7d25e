// The line that begins a sample in the text of `perf script`:
//
//   comm  pid/tid [cpu]  seconds:  period event:
//
// Of a recording without call chains, the only frame is on the same line:
//
//   comm  pid  seconds:  period event:  pc function (module)
//
// Everything but the name and one number may be missing, and names hold blanks,
// digits and colons.  Source: perf-script(1), and what stackcollapse-perf.pl makes of it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pe::fold {

struct PerfEventField {
  std::string_view name;             ///< "cycles", "cpu-clock:ppp", "sched:sched_switch"
  std::uint64_t period = 0;          ///< 0: not printed, or not a number that fits
  bool is_period_too_large = false;  ///< ... the latter
};

struct PerfHeader {
  std::string_view comm;
  std::string_view pid;  ///< empty where only one number is printed
  std::string_view tid;
  std::optional<PerfEventField> event;
  std::string_view rest = {};         ///< what stands behind the numbers
  std::string_view after_event = {};  ///< the fields of a tracepoint, or a frame
};

/// How to take names apart.
enum class HeaderRules {
  kBest,  ///< the numbers are the last before "[cpu]" or the time; the event may be followed by its
          ///< fields
  kPerl,  ///< the first number ends the name, which has two characters or more; the event ends the
          ///< line
};

/// nullopt if the line begins no sample.
std::optional<PerfHeader> parse_perf_header(std::string_view line, HeaderRules rules);

/// The time that a header prints ("12.345678:"), in microseconds; nullopt if it prints none.
std::optional<std::uint64_t> header_time_us(const PerfHeader& header);

}  // namespace pe::fold
