// A lock of four bytes that is free when it is zero, so memory that a fork has wiped holds free
// locks.  Hold it for a few hundred nanoseconds at a time, and never while calling into the
// program, the dynamic linker or the C library's allocator.
// SPDX-License-Identifier: MIT
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "recording/inprocess/keep_errno.h"

namespace pe::malloctrace {

class SpinLock {
 public:
  void lock() noexcept {
    for (unsigned round = 0; word_.exchange(1, std::memory_order_acquire) != 0; ++round)
      wait(round);
  }
  bool try_lock() noexcept { return word_.exchange(1, std::memory_order_acquire) == 0; }
  void unlock() noexcept { word_.store(0, std::memory_order_release); }

 private:
  /// The holder may have been preempted.  If we preempted it with a higher priority (SCHED_FIFO),
  /// it runs only while we sleep.
  void wait(unsigned round) const noexcept {
    constexpr int kSpins = 200;
    for (int i = 0; i < kSpins; ++i) {
      if (word_.load(std::memory_order_relaxed) == 0)
        return;
      __builtin_ia32_pause();
    }
    constexpr unsigned kYields = 8;
    constexpr timespec kNap{0, 50'000};
    if (round < kYields) {
      ::sched_yield();
    } else {
      const inprocess::KeepErrno keep;
      ::syscall(SYS_nanosleep, &kNap, nullptr);
    }
  }

  std::atomic<std::uint32_t> word_{0};
};

}  // namespace pe::malloctrace
