// The process that samples itself: its shared memory, the slots of its threads, and their timers.
//
// Functions for signal handlers take no lock and allocate nothing.  They access only memory that
// was mapped before the first timer started.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "recording/inprocess/atomics.h"
#include "recording/inprocess/runtime/stack_bounds.h"
#include "recording/inprocess/runtime/timers.h"
#include "recording/signal/core/alternate_stack.h"
#include "recording/signal/core/take_script.h"
#include "recording/signal/layout.h"
#include "recording/signal/settings.h"

namespace pe::inprocess {

/// Data of the thread in a slot that the process does not share.  In zeroed memory.
struct OwnThread {
  StackBounds stack;
  ThreadTimer timer;
  std::uint32_t is_armed;       ///< a signal with the timer's cookie is a sample
  std::uint32_t is_found;       ///< not started by our pthread_create: we do not notice its end yet
  std::uint64_t script_state;   ///< see take_script()
  AddedStack* added_stack;      ///< see add_alternate_stack()
  std::uint32_t is_stack_lost;  ///< an earlier thread of this slot ended on the added stack
};

/// Plain fields are set before the first timer starts.  Others may change in any thread: access
/// those only with the functions of atomics.h.
struct Process {
  Settings settings;
  bool has_settings;
  bool has_key;
  bool has_handler;
  std::uint32_t is_sampling;  ///< may change
  std::uint32_t can_copy;     ///< see can_copy_own_memory(); may change to 0
  std::uint32_t is_closed;  ///< may change to 1: a filter of system calls forbids to start threads
  std::uint32_t pid;
  pthread_key_t key;  ///< reports ends of threads; its value is the slot plus one
  TimerKind timer_kind;
  std::uint32_t max_threads;
  std::uint32_t next_slot;         ///< where the search for a free slot starts
  std::uint64_t cookie;            ///< the upper half of our timers' sigval
  ScriptOfProcess parents_script;  ///< in the child of a fork: the same memory has it
  std::byte* shared;
  std::uint64_t shared_bytes;
  OwnThread* own;
  ScriptRoom* script_rooms;  ///< one for each slot; nullptr if there is no memory
  AddedStack* stacks;        ///< the same

  [[nodiscard]] bool samples() const noexcept { return load_relaxed(is_sampling) != 0; }
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

/// Starts to sample this process and all its threads, with the settings in `environment`
/// (execve(2)).  Does nothing if there are none.  Reports a failure on standard error.
void begin_process(const char* const* environment) noexcept;

/// Starts to sample the calling thread.  Not for handlers.  Does nothing if the process is not
/// sampled.
void begin_thread() noexcept;

/// Starts to sample another thread, or in a handler the calling one.  Returns its slot, or kNoSlot.
std::uint32_t begin_found_thread(pid_t tid) noexcept;

/// Starts to sample the threads that the reader has asked for.  For handlers.
void begin_wanted_threads() noexcept;

/// Returns the slot of the calling thread, if no timer's signal carries it; kNoSlot if there is
/// none.  For handlers.
std::uint32_t slot_of_this_thread() noexcept;

/// Whether a timer's signal with this slot comes from the calling thread's timer.  For handlers.
bool is_slot_of_this_thread(std::uint32_t slot) noexcept;

/// Stops sampling of the calling thread until it continues.  Returns false if it was not sampled.
/// Not for handlers.
bool pause_this_thread() noexcept;
void continue_this_thread() noexcept;
/// Returns the alternate stack that the calling thread was given; nullptr if none.
AddedStack* added_stack_of_this_thread() noexcept;

/// Stops sampling of the whole process for good, and reports that on standard error.
void stop_process(WhyStopped why) noexcept;

/// Whether the caller is the sampled process, not a child of vfork(2) or clone(2) in its memory.
bool is_own_process() noexcept;

}  // namespace pe::inprocess
