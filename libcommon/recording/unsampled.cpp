// SPDX-License-Identifier: MIT
#include "recording/unsampled.h"

#include <fmt/format.h>

namespace pe::recording {

std::string describe_unsampled(const ClockCounted& counted, std::uint64_t samples) {
  // What every recording has: the rest of a period at the end of each of its threads, on each CPU.
  constexpr double kUsualShare = 0.05, kUsualPeriods = 10;
  constexpr double kNsPerSecond = 1e9, kNsPerMs = 1e6;
  const auto all = static_cast<double>(counted.time_ns);
  const auto period = static_cast<double>(counted.period_ns);
  const double unsampled = all - static_cast<double>(samples) * period;
  if (unsampled < kUsualShare * all || unsampled < kUsualPeriods * period)
    return "";
  return fmt::format(
      "{:.2f} of {:.2f} s CPU time without samples: of processes that live shorter than the {:.3g} "
      "ms between two (-a samples them), or while a host held this machine's CPU",
      unsampled / kNsPerSecond, all / kNsPerSecond, period / kNsPerMs);
}

}  // namespace pe::recording
