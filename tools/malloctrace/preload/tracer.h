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
  std::uint64_t told_private_bytes;  ///< bytes of the process's tables that the header includes
  bool is_fork;
  std::uint32_t is_closed;  ///< see stop_for_filter(); accessed by atomics.h only
};

/// The data of a thread.  In zeroed memory.
struct Thread {
  bool is_ready;
  bool is_busy;  ///< in a hook: allocations of a signal handler are not counted meanwhile
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
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-dynamic-static-initializers)
extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

/// Starts the process by the settings in its environment (as in execve(2)).  The C library may not
/// know its own environment yet.
void begin_process(const char* const* environment) noexcept;
/// Starts the calling thread, and the process if necessary; nullptr if it is not traced.
Thread* begin_thread() noexcept;

/// Stacks have the frames of an interpreter from now on, also in forked processes.  To be called
/// while the process has one thread.  `find` returns where the calling thread is in it.
void begin_scripts(const OwnScript& script, ScriptState (*find)() noexcept) noexcept;
/// The blocks of its own allocator count, also in forked processes.
void note_objects() noexcept;

/// Ends a thread that begin_thread() has started, if nothing will report the end of that thread.
void end_late_thread(Thread& thread) noexcept;

/// Returns the site of the caller of a hook; 0 if it cannot be found.  `frame` is that of the hook:
/// it holds the caller's frame pointer and the return address.
std::uint32_t find_site(Thread& thread, const std::uint64_t* frame) noexcept;

/// Prepares the filter of samples when the process has started, see hooks.cpp.  `knows_few` means
/// that only samples count, or nothing.
void prepare_filter(bool knows_few) noexcept;
/// Notes that the process is about to end, by exit(3) or _exit(2).
void note_end() noexcept;
/// Ends tracing of the process for good, because a filter of system calls (seccomp(2)) will end it
/// if it makes our calls.
void stop_for_filter() noexcept;
/// Whether the process is traced.
bool is_traced() noexcept;
/// Whether a range of addresses contains memory that the tracer has mapped.
bool is_tracers_memory(std::uint64_t start, std::uint64_t end) noexcept;
/// Whether mmap(2) counts as an allocation; else it is summed up.
bool traces_mmap() noexcept;
/// Whether processes that this one starts are to be traced.
bool follows_children() noexcept;
/// Reports to malloctrace that a program is started without the library, because it would not start
/// with it.
void report_left_out() noexcept;
/// Whether this is the traced process, and not the child of a vfork(2) in its memory.
bool is_own_process() noexcept;
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
    if (load_relaxed(thread_->tracer->is_closed) != 0) [[unlikely]] {
      thread_ = nullptr;
      return;
    }
    if (thread_->is_busy) [[unlikely]] {
      count_up(thread_->tracer->shared.header().dropped);
      thread_ = nullptr;
      return;
    }
    thread_->is_busy = true;
    asm volatile("" ::: "memory");  // for signal handlers
  }
  Hook(const Hook&) = delete;
  Hook(Hook&&) = delete;
  Hook& operator=(const Hook&) = delete;
  Hook& operator=(Hook&&) = delete;
  ~Hook() {
    asm volatile("" ::: "memory");
    if (thread_ == nullptr)
      return;
    thread_->is_busy = false;
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
