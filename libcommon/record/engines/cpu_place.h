// Where, and how soon, the calling thread runs.
// SPDX-License-Identifier: MIT
#pragma once

#include <sched.h>

#include <cstdint>

namespace pe::record {

/// For one thread, that for which it was made.
class CpuPlace {
 public:
  /// Lets the thread run before others as far as that is allowed: threads stand still while it
  /// waits for a CPU.
  CpuPlace();

  /// Is it there now?
  [[nodiscard]] static bool is_on(std::uint32_t cpu) noexcept;
  /// Takes the thread to that CPU, and keeps it there; false if it may not run there.
  bool stand_on(std::uint32_t cpu);
  /// Lets it run everywhere again: what keeps that CPU busy might keep it from its work.
  void stand_anywhere();

 private:
  cpu_set_t cpus_ = {};  ///< where it may run
  bool is_pinned_ = false;
};

}  // namespace pe::record
