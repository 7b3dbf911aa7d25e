// Measures the CPU time of the recorder itself.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace pe::recording {

/// Returns the CPU time of this process since its start, user and system, in seconds.
double own_cpu_seconds();

class OwnCost {
 public:
  /// The recording starts, or ends, at this time (CLOCK_MONOTONIC, in nanoseconds).
  void begin_wall(std::uint64_t now_ns) noexcept { began_ns_ = now_ns; }
  void end_wall(std::uint64_t now_ns) noexcept;
  /// Returns the length of the recording in seconds.
  [[nodiscard]] double wall_seconds() const;
  /// Describes the cost so far: "own CPU 0.031 s, 0.31 % of 10.00 s".
  [[nodiscard]] std::string describe() const;
  /// Returns the length of the recording: "10.00 s".
  [[nodiscard]] std::string describe_length() const;
  /// Returns the cost for the end of a summary: ", recorder: 0.31 % of a CPU"; empty if the
  /// recording was so short that the share means nothing.
  [[nodiscard]] std::string describe_share() const;
  /// Describes the cost since the end of the recording: "0.012 s of CPU after the end".
  [[nodiscard]] std::string describe_rest() const;

 private:
  double cpu_at_end_ = 0;  ///< seconds
  std::uint64_t began_ns_ = 0, ended_ns_ = 0;
};

}  // namespace pe::recording
