// What recording itself costs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace pe::record {

/// CPU time of this process up to now, user and system, in seconds.
double own_cpu_seconds();

class OwnCost {
 public:
  /// Of this process, from here on.
  OwnCost();
  /// The recording has begun.
  void begin_wall();
  /// It has ended.
  void end_wall();
  /// "own CPU 0.031 s, 0.31 % of 10.00 s", of what was used up to now.
  [[nodiscard]] std::string describe() const;

 private:
  double cpu_before_;  ///< seconds
  std::uint64_t began_ns_ = 0, ended_ns_ = 0;
};

}  // namespace pe::record
