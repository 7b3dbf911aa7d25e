// Units of time, and the kernel's clocks (clock_gettime(2)), which signal handlers may read.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <ctime>

namespace pe {

inline constexpr std::uint64_t kNsPerSecond = 1'000'000'000, kNsPerMs = 1'000'000, kNsPerUs = 1'000;
inline constexpr std::uint64_t kUsPerSecond = 1'000'000, kMsPerSecond = 1'000;

constexpr std::uint64_t ns_of(const timespec& time) noexcept {
  return static_cast<std::uint64_t>(time.tv_sec) * kNsPerSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

constexpr timespec timespec_of(std::uint64_t ns) noexcept {
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

/// Returns the clock's time; 0 if there is no such clock.
inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return ns_of(time);
}

/// Reads the clock of sample streams, which all recorders use.
inline std::uint64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

/// Returns the CPU time of the calling thread.
inline std::uint64_t own_cpu_ns() noexcept { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace pe
