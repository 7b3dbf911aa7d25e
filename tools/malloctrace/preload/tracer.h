// The library's data about the process and about each of its threads.
//
// All of it is in memory that forks wipe: code that finds zeros starts anew.  A thread starts at
// its first allocation, the process at that of its first thread.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "malloctrace/preload/memory/account.h"
#include "malloctrace/preload/memory/shadow_map.h"
#include "malloctrace/preload/sampling.h"
#include "malloctrace/preload/stacks/code_book.h"
#include "malloctrace/preload/stacks/script_walk.h"
#include "malloctrace/preload/stacks/stack_walk.h"
#include "malloctrace/preload/stacks/stack_writer.h"
#include "recording/inprocess/runtime/stack_bounds.h"

namespace pe::malloctrace {

/// Sums of the program's mappings, if they do not count as allocations.  In zeroed memory.
struct MappedSites {
  static constexpr std::size_t kSites = 1024;  ///< other sites are only in the sums

  SpinLock lock;
  std::array<std::uint32_t, kSites> sites;
  std::array<std::uint64_t, kSites> bytes;

  void add(heap::Header& header, std::uint32_t site, std::uint64_t mapped) noexcept;
  void remove(heap::Header& header, std::uint64_t unmapped) noexcept;
};

struct Thread;

/// A call of the real allocator by a hook, see hooks/allocator_call.h.
struct CallNote {
  const std::uint64_t* frame;    ///< of the hook; nullptr: there is no call
  std::uint64_t return_address;  ///< of the hook, in that frame
};

/// The data that each hook reads first.
struct ThreadState {
  Thread* thread;             ///< may be that of the parent process: is_ready is then false
  std::uint64_t sample_left;  ///< bytes to the next sample; 0 also before the thread has started
  bool is_starting;           ///< true: nothing is counted
  bool is_late;               ///< it has ended for us, but still allocates and frees
  std::uint8_t destructions;  ///< how often the destructors of its keys have run
  CallNote call;              ///< the outermost one
};

/// The data of the process.  In zeroed memory.
struct Tracer {  // NOLINT(clang-analyzer-optin.performance.Padding): there is one
  Settings settings;
  SharedMemory shared;
  Extents extents;  ///< of `shared`
  LiveBlocks live;
  LiveBlocks objects;  ///< of an interpreter's own allocator
  MappingList mappings;
  MappedSites mapped;
  Ledger ledger;
  CodeBook codes;
  SpinLock sites_lock;  ///< for adding to the next two
  SiteTable sites;
  StackWriter stacks;
  ScriptBook scripts;
  bool has_scripts;  ///< `scripts` has started
  SpinLock threads_lock;
  PrivateArray<std::uint32_t> free_slots;
  std::uint32_t free_slot_count;
  PrivateArray<ThreadState*> running;  ///< by slot
  std::uint64_t told_private_bytes;    ///< bytes of the process's tables that the header includes
  bool is_fork;
  // Only of a process that ran already; accessed by atomics.h.
  std::uint32_t redirected_tick;  ///< when its objects were last looked through
  std::uint32_t seen_tick;        ///< the reader's last one, and when it was seen first
  std::uint64_t seen_ns;
};

/// The data of a thread.  In zeroed memory.
struct Thread {
  bool is_ready;
  bool is_busy;  ///< in a hook: allocations of a signal handler are not counted meanwhile; others
                 ///< read it, see process.h
  bool is_late;  ///< for one call of a hook: the C library is destroying the thread
  Tracer* tracer;
  const void*
      last_block;  ///< the last block that it allocated, if it is live; see Totals::temporary_count
  /// Bytes to the next sample at that time.  There are fewer now if the thread has allocated again
  /// without a sample.
  std::uint64_t left_at_last;
  StackHash last_stack;  ///< and its site: mostly the next stack is the same
  std::uint32_t last_site;
  StackWalk walk;
  ScriptWalk script;
  StackPath added;  ///< the stack of this thread that was new last
  Account account;
  heap::ThreadSums* sums;
  inprocess::StackBounds stack;
  SampleDistance distance;
  StackWalk::Counts told;            ///< the part of walk.counts() that the header includes
  std::uint64_t told_private_bytes;  ///< the part of its memory that the header includes
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-dynamic-static-initializers)
extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

/// 1: no hook counts any more; accessed by atomics.h only.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
extern constinit std::uint32_t tracing_is_off;

/// Starts the calling thread, and the process if necessary; nullptr if it is not traced.
Thread* begin_thread() noexcept;

/// Ends a thread that begin_thread() has started, if nothing will report the end of that thread.
void end_late_thread(Thread& thread) noexcept;

/// Returns the site of the caller of a hook; 0 if it cannot be found.  `frame` is that of the hook:
/// it holds the caller's frame pointer and the return address.
std::uint32_t find_site(Thread& thread, const std::uint64_t* frame) noexcept;

/// Prepares the filter of samples when the process has started, see hooks.cpp.  `knows_few` means
/// that only samples count, or nothing.
void prepare_filter(bool knows_few) noexcept;
/// To be called after dlclose(3).
void note_unloaded() noexcept;
/// Counts an allocation that the allocator has refused.
void note_failure() noexcept;
/// Counts an allocation for which no thread could be started: it may have been too early for that.
void note_uncounted() noexcept;

/// Allocations are ours and not counted while one of these exists.
class Uncounted {
 public:
  Uncounted() noexcept : before_(thread_state.is_starting) { thread_state.is_starting = true; }
  Uncounted(const Uncounted&) = delete;
  Uncounted(Uncounted&&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
  Uncounted& operator=(Uncounted&&) = delete;
  ~Uncounted() { thread_state.is_starting = before_; }

 private:
  bool before_;
};

/// The thread, marked as being in a hook until this is destroyed.  False in a signal handler that
/// has interrupted a hook, and if nothing is traced.
class Hook {
 public:
  Hook() noexcept : thread_(thread_state.thread) {
    if (thread_ == nullptr || !thread_->is_ready) [[unlikely]]
      thread_ = begin_thread();
    if (thread_ == nullptr)
      return;
    const bool was_busy = thread_->is_busy;
    store_relaxed(thread_->is_busy, true);
    asm volatile("" ::: "memory");  // for signal handlers, and before the next look
    // After the end of the trace, its memory may be gone.
    if (load_relaxed(tracing_is_off) != 0 || !thread_->is_ready) [[unlikely]] {
      store_relaxed(thread_->is_busy, was_busy);
      thread_ = nullptr;
      return;
    }
    if (was_busy) [[unlikely]] {
      count_up(thread_->tracer->shared.header().dropped);
      thread_ = nullptr;
    }
  }
  Hook(const Hook&) = delete;
  Hook(Hook&&) = delete;
  Hook& operator=(const Hook&) = delete;
  Hook& operator=(Hook&&) = delete;
  ~Hook() {
    asm volatile("" ::: "memory");
    if (thread_ == nullptr)
      return;
    store_relaxed(thread_->is_busy, false);
    if (thread_->is_late) [[unlikely]]
      end_late_thread(*thread_);
  }

  explicit operator bool() const noexcept { return thread_ != nullptr; }
  Thread& operator*() const noexcept { return *thread_; }
  Thread* operator->() const noexcept { return thread_; }

 private:
  Thread* thread_;
};

}  // namespace pe::malloctrace
