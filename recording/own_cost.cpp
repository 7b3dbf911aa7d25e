// SPDX-License-Identifier: MIT
#include "recording/own_cost.h"

#include <fmt/format.h>
#include <sys/resource.h>

namespace pe::recording {

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr double kMicrosecond = 1e-6;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * kMicrosecond;
}

void OwnCost::end_wall(std::uint64_t now_ns) noexcept {
  ended_ns_ = now_ns;
  cpu_at_end_ = own_cpu_seconds();
}

double OwnCost::wall_seconds() const {
  constexpr double kNanosecond = 1e-9;
  return static_cast<double>(ended_ns_ - began_ns_) * kNanosecond;
}

std::string OwnCost::describe_length() const { return fmt::format("{:.2f} s", wall_seconds()); }

std::string OwnCost::describe_share() const {
  // Starting up takes some milliseconds of CPU time, which would be most of the cost.
  constexpr double kLeastSeconds = 0.5;
  if (wall_seconds() < kLeastSeconds)
    return {};
  return fmt::format(", recorder: {:.2f} % of a CPU", 100 * own_cpu_seconds() / wall_seconds());
}

std::string OwnCost::describe_rest() const {
  return fmt::format("{:.3f} s of CPU after the end", own_cpu_seconds() - cpu_at_end_);
}

std::string OwnCost::describe() const {
  const double wall = wall_seconds();
  const double cpu = own_cpu_seconds();
  return fmt::format("own CPU {:.3f} s, {:.2f} % of {:.2f} s", cpu,
                     wall > 0 ? 100 * cpu / wall : 0.0, wall);
}

}  // namespace pe::recording
