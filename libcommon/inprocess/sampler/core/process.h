// The process that samples itself: its memory that is shared, the slots of its threads, and the
// timers of those.
//
// What handlers of signals call takes no lock, allocates nothing, and looks at memory that was
// mapped before the first timer began.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "inprocess/sampler/core/pace.h"
#include "inprocess/sampler/core/stack_bounds.h"
#include "inprocess/sampler/layout.h"
#include "inprocess/sampler/settings.h"

namespace pe::inprocess {

/// What only the process itself knows of the thread in a slot.  In zeroed memory.
struct OwnThread {
  StackBounds stack;
  Pace pace;
  int timer;
  bool has_timer;
  bool is_armed;  ///< a signal with its cookie is a sample
  bool is_found;  ///< not begun by our pthread_create: how it ends is not known yet
};

struct Process {
  Settings settings;
  bool has_settings;
  bool has_key;
  bool has_handler;
  bool is_sampling;
  std::uint32_t pid;
  pthread_key_t key;  ///< for the ends of threads: the slot plus one
  TimerKind timer_kind;
  std::uint32_t max_threads;
  std::uint32_t next_slot;  ///< where to look for a free one first
  std::uint64_t cookie;     ///< of our timers: the upper half of their sigval
  std::byte* shared;
  std::uint64_t shared_bytes;
  OwnThread* own;

  [[nodiscard]] Header& header() const noexcept { return *reinterpret_cast<Header*>(shared); }
  [[nodiscard]] Thread& thread(std::uint32_t slot) const noexcept {
    return reinterpret_cast<Thread*>(shared + kThreadsAt)[slot];
  }
  [[nodiscard]] std::byte* ring(std::uint32_t slot) const noexcept {
    return shared + kRingsAt + std::uint64_t{slot} * settings.ring_bytes;
  }
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-dynamic-static-initializers)
extern constinit Process process;

inline constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

/// Begins to sample this process and all of its threads, as `environment` (execve(2)) asks; does
/// nothing if nobody asks, and says on standard error why it cannot.
void begin_process(const char* const* environment) noexcept;

/// Begins the calling thread, outside of handlers.  Does nothing where the process is not sampled.
void begin_thread() noexcept;

/// Begins another thread, or the calling one in a handler.  Its slot, or kNoSlot.
std::uint32_t begin_found_thread(pid_t tid) noexcept;

/// Begins the threads that the reader has asked for.  For handlers.
void begin_wanted_threads() noexcept;

/// The slot of the calling thread, where that is not known by a timer; kNoSlot if there is none.
/// For handlers.
std::uint32_t slot_of_this_thread() noexcept;

/// Whether a timer's signal, with this slot, is of the calling thread's timer.  For handlers.
bool is_slot_of_this_thread(std::uint32_t slot) noexcept;

/// Ends sampling of the whole process for good, and tells `why` on standard error.
void stop_process(const char* why) noexcept;

/// Whether this is the process that is sampled, and not the child of a vfork(2) or clone(2) in its
/// memory.
bool is_own_process() noexcept;

}  // namespace pe::inprocess
