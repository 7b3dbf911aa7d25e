// Controls where, and how soon, the calling thread runs.
// SPDX-License-Identifier: MIT
#pragma once

#include <sched.h>

#include <cstdint>

namespace pe::recording {

/// Serves one thread, the one that creates it.
class CpuPlace {
 public:
  /// Lets the thread run before others, as far as permitted, because other threads stay stopped
  /// while it waits for a CPU.
  CpuPlace();

  /// Returns whether the calling thread runs on `cpu` now.
  [[nodiscard]] static bool is_on(std::uint32_t cpu) noexcept;
  /// Moves the thread to `cpu` and pins it; false if it may not run on that CPU.
  bool stand_on(std::uint32_t cpu);
  /// Unpins the thread, because other work on that CPU might delay it.
  void stand_anywhere();

 private:
  cpu_set_t cpus_ = {};  ///< where the thread may run
  bool is_pinned_ = false;
};

}  // namespace pe::recording
