// The sampled threads.  Each has a timer, and a ring that its signal handler fills.
//
// add() claims a slot for a thread, under the table's lock.  The thread that writes the stream
// gives the slot back, once the sampled thread has ended and its ring is empty.  Handlers take no
// lock: the signal of the kernel's timer carries their slot.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "recording/inprocess/runtime/timers.h"
#include "recording/signal/core/take_sample.h"
#include "recording/signal/layout.h"
#include "recording/sigprof/options.h"

namespace pe::inprocess {

struct Slot {
  Thread shared;  ///< its counts are never reset
  StackBounds stack;
  std::byte* ring;
  ThreadTimer timer;
  std::uint64_t taken_before;  ///< samples, also lost ones, of earlier threads in the slot

  // Fields of the thread that writes the stream.
  bool is_announced;
  std::array<char, 16> name;
  std::uint64_t named_ns;   ///< when the name was read
  std::uint64_t seen_scan;  ///< the last scan that found the thread
};

/// The result of adding a thread.
enum class Added { kAdded, kWasThere, kEnded, kRefused, kClosed };

class ThreadTable {
 public:
  static constexpr std::size_t kMost = kMaxThreads;

  /// Works in zeroed memory.  The upper half of each signal's value is `cookie`.
  void open(const Options& options, std::uint64_t cookie) noexcept;
  /// Frees the rings.
  void free_rings() noexcept;

  /// Starts to sample a thread.  For kRefused, errno has the reason.
  Added add(pid_t tid, StackBounds stack) noexcept;
  /// Scans the threads of the process: adds new ones, if `adds`, and marks missing ones as ended.
  /// Skips thread `except`.
  void scan(pid_t except, bool adds) noexcept;
  /// Stops all timers.  Later calls of add() add nothing.
  void close() noexcept;

  /// Handles a signal of the timer of slot `number`.  For handlers.
  void take(std::uint32_t number, const siginfo_t& signal, const ucontext_t& context) noexcept;

  /// The number of slots that may have been used: 0..used()-1.
  [[nodiscard]] std::uint32_t used() const noexcept;
  [[nodiscard]] Slot& slot(std::uint32_t number) noexcept { return slots_[number]; }
  [[nodiscard]] const Slot& slot(std::uint32_t number) const noexcept { return slots_[number]; }
  /// Copies the bytes between tail and head in one piece.  They must be at most a ring full.
  void copy_ring(const Slot& slot, std::uint64_t head, std::byte* into) const noexcept;
  /// Gives back the slot of a thread that has ended, and whose ring is empty.
  void release(std::uint32_t number) noexcept;

  /// The maximum number of threads that one scan has found but could not add.
  [[nodiscard]] std::uint64_t refused() const noexcept;
  [[nodiscard]] std::uint64_t added() const noexcept;
  /// The lock that is held while slots are claimed.
  [[nodiscard]] pthread_mutex_t& lock() noexcept { return lock_; }

 private:
  Slot* find(pid_t tid) noexcept;
  Slot* free_slot() noexcept;
  Added begin(Slot& slot, pid_t tid) noexcept;
  void end_missing() noexcept;

  pthread_mutex_t lock_;
  Options options_;
  std::uint32_t pid_;
  std::uint64_t cookie_;
  std::uint64_t scans_, refused_, added_;
  std::uint32_t used_;
  std::uint32_t next_find_;  ///< where to search first: each scan lists threads in the same order
  bool is_closed_;
  bool can_copy_;  ///< see can_copy_own_memory()
  std::array<Slot, kMost> slots_;
};

}  // namespace pe::inprocess
