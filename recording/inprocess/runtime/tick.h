// The time that timers of samples count, and the period of the kernel's clock.  The kernel checks
// CPU-time timers at each tick.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <ctime>

namespace pe::inprocess {

/// The time over which samples are spread.
enum class Clock : std::uint32_t {
  kCpu,   ///< the time that a thread runs
  kWall,  ///< all time, including sleep
};

/// Returns the period in nanoseconds: the resolution of the coarse clock (clock_getres(2)).
inline std::uint64_t tick_ns() noexcept {
  constexpr std::uint64_t kUsualNs = 4'000'000;
  timespec resolution{};
  const bool is_known = ::clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) == 0 &&
                        resolution.tv_sec == 0 && resolution.tv_nsec > 0;
  return is_known ? static_cast<std::uint64_t>(resolution.tv_nsec) : kUsualNs;
}

}  // namespace pe::inprocess
