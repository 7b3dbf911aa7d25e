// SPDX-License-Identifier: MIT
#include "record/own_cost.h"

#include <fmt/format.h>
#include <sys/resource.h>

namespace pe::record {

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr double kMicrosecond = 1e-6;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * kMicrosecond;
}

OwnCost::OwnCost() : cpu_before_(own_cpu_seconds()) {}

std::string OwnCost::describe() const {
  constexpr double kNanosecond = 1e-9;
  const double wall = static_cast<double>(ended_ns_ - began_ns_) * kNanosecond;
  const double cpu = own_cpu_seconds() - cpu_before_;
  return fmt::format("own CPU {:.3f} s, {:.2f} % of {:.2f} s", cpu,
                     wall > 0 ? 100 * cpu / wall : 0.0, wall);
}

}  // namespace pe::record
