// The threads that are sampled: for each a timer, and a ring that its signal handler fills.
//
// A slot is taken by whoever adds a thread, under the table's lock, and given back by the thread
// that writes the stream, once the thread has ended and its ring is empty.  Handlers take no lock:
// the kernel's timer tells them their slot.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "inprocess/sampler/core/pace.h"
#include "inprocess/sampler/core/take_sample.h"
#include "inprocess/sampler/layout.h"
#include "inprocess/sigprof/options.h"

namespace pe::inprocess {

struct Slot {
  Thread shared;  ///< counts in it are never set back
  Pace pace;
  StackBounds stack;
  std::byte* ring;
  int timer;
  bool has_timer;
  std::uint64_t taken_before;  ///< samples, lost ones too, of threads that had the slot before

  // Of the thread that writes the stream.
  bool is_told;
  std::array<char, 16> name;
  std::uint64_t named_ns;   ///< when it was looked up
  std::uint64_t seen_scan;  ///< the last in which the thread was there
};

/// What became of a thread that was to be added.
enum class Added { kAdded, kWasThere, kEnded, kRefused, kClosed };

class ThreadTable {
 public:
  static constexpr std::size_t kMost = kMaxThreads;

  /// In zeroed memory.  `cookie` comes in the upper half of each signal's value.
  void open(const Options& options, std::uint64_t cookie) noexcept;
  /// Frees the rings.
  void free_rings() noexcept;

  /// Begins to sample a thread.  kRefused: errno says why.
  Added add(pid_t tid, StackBounds stack) noexcept;
  /// Looks which threads there are: adds those that are new, if `adds`, and marks as ended those
  /// that are gone.  `except` is left out.
  void scan(pid_t except, bool adds) noexcept;
  /// Ends all timers; nothing is added after that.
  void close() noexcept;

  /// For handlers: the signal of the timer of slot `number`.
  void take(std::uint32_t number, int overrun, const ucontext_t& context) noexcept;

  /// Slots that may have been used: 0..used()-1.
  [[nodiscard]] std::uint32_t used() const noexcept;
  [[nodiscard]] Slot& slot(std::uint32_t number) noexcept { return slots_[number]; }
  [[nodiscard]] const Slot& slot(std::uint32_t number) const noexcept { return slots_[number]; }
  /// What is between tail and head, which must be at most a ring full, in one piece.
  void copy_ring(const Slot& slot, std::uint64_t head, std::byte* into) const noexcept;
  /// Of a thread that has ended, and whose ring is empty.
  void give_back(std::uint32_t number) noexcept;

  /// Threads that a scan has found and could not add, the most at one time.
  [[nodiscard]] std::uint64_t refused() const noexcept;
  [[nodiscard]] std::uint64_t added() const noexcept;
  /// Held while slots are taken.
  [[nodiscard]] pthread_mutex_t& lock() noexcept { return lock_; }

 private:
  Slot* find(pid_t tid) noexcept;
  Slot* free_slot() noexcept;
  Added begin(Slot& slot, pid_t tid) noexcept;
  void end_missing() noexcept;

  pthread_mutex_t lock_;
  Options options_;
  std::uint64_t cookie_;
  std::uint64_t scans_, refused_, added_;
  std::uint32_t used_;
  std::uint32_t next_find_;  ///< where to look first: threads come in the same order each time
  bool is_closed_;
  std::array<Slot, kMost> slots_;
};

}  // namespace pe::inprocess
