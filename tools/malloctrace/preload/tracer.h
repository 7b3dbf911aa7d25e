// What the library knows of the process and of each of its threads.
//
// All of it is in memory that forks wipe: whoever finds zeros begins anew.  A thread begins at its
// first allocation, the process at its first thread's.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "malloctrace/preload/memory/account.h"
#include "malloctrace/preload/memory/live_blocks.h"
#include "malloctrace/preload/sampling.h"
#include "malloctrace/preload/settings.h"
#include "malloctrace/preload/stacks/code_book.h"
#include "malloctrace/preload/stacks/mapping_list.h"
#include "malloctrace/preload/stacks/stack_tree.h"
#include "malloctrace/preload/stacks/stack_walk.h"

namespace pe::malloctrace {

/// What the program maps, where that is only summed up.  In zeroed memory.
struct MappedSites {
  static constexpr std::size_t kSites = 1024;  ///< others are in the sums only

  SpinLock lock;
  std::array<std::uint32_t, kSites> sites;
  std::array<std::uint64_t, kSites> bytes;

  void add(heap::Header& header, std::uint32_t site, std::uint64_t mapped) noexcept;
  void remove(heap::Header& header, std::uint64_t unmapped) noexcept;
};

/// Of the process.  In zeroed memory.
struct Tracer {  // NOLINT(clang-analyzer-optin.performance.Padding): there is one
  Settings settings;
  SharedMemory shared;
  Extents extents;  ///< of `shared`
  LiveBlocks live;
  MappingList mappings;
  MappedSites mapped;
  Ledger ledger;
  CodeBook codes;
  SpinLock sites_lock;  ///< for adding to the next two
  SiteTable sites;
  StackTree tree;
  SpinLock threads_lock;
  PrivateArray<std::uint32_t> free_slots;
  std::uint32_t free_slot_count;
  std::uint64_t told_private_bytes;  ///< of the process's tables
  bool is_fork;
};

/// Of a thread.  In zeroed memory.
struct Thread {
  bool is_ready;
  bool is_busy;  ///< in a hook: what a signal handler allocates then is not counted
  bool is_late;  ///< for one call of a hook: the C library is taking the thread apart
  Tracer* tracer;
  const void* last_block;  ///< that it has allocated, if it is live; see Totals::temporary_count
  /// Bytes to the next sample at that time: less now if it has allocated again, and that was none.
  std::uint64_t left_at_last;
  StackHash last_stack;  ///< and its site: mostly the same again
  std::uint32_t last_site;
  StackWalk walk;
  Account account;
  heap::ThreadSums* sums;
  std::uint64_t stack_low, stack_end;      ///< its own stack
  std::uint64_t foreign_low, foreign_end;  ///< another one that it has been on
  SampleDistance distance;
  StackWalk::Counts told;  ///< of walk.counts(), what the header has already
  MapsRoom room;
};

/// What is looked at first in each hook.
struct ThreadState {
  Thread* thread;             ///< may be of the parent process: is_ready is false then
  std::uint64_t sample_left;  ///< bytes to the next sample; 0 also before the thread has begun
  bool is_starting;           ///< nothing is counted
  bool is_late;               ///< it has ended for us, but allocates and frees still
  std::uint8_t destructions;  ///< how often the destructors of its keys were run
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-dynamic-static-initializers)
extern constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

/// Begins the process, by what its environment says (as in execve(2)); it may be too early for the
/// C library to know its own.
void begin_process(const char* const* environment) noexcept;
/// Begins the calling thread, and the process if need be; nullptr if it is not traced.
Thread* begin_thread() noexcept;

/// Ends what begin_thread() has begun where nothing will tell that the thread has ended.
void end_late_thread(Thread& thread) noexcept;

/// The site of the caller of a hook; 0 if it cannot be had.  `frame` is that of the hook: the
/// caller's frame pointer and the return address.
std::uint32_t find_site(Thread& thread, const std::uint64_t* frame) noexcept;

/// For the filter of samples, see hooks.cpp: called when the process has begun.  `knows_few`: not
/// every block is counted, but samples, or none.
void prepare_filter(bool knows_few) noexcept;
/// The process is about to end, by exit(3) or _exit(2).
void note_end() noexcept;
/// Whether the process is traced.
bool is_traced() noexcept;
/// Whether some of what the tracer has mapped is in a range of addresses.
bool is_tracers_memory(std::uint64_t start, std::uint64_t end) noexcept;
/// Whether mmap(2) counts as an allocation; else it is summed up.
bool traces_mmap() noexcept;
/// Whether processes that this one begins are to be traced.
bool follows_children() noexcept;
/// To malloctrace: a program is begun without the library, with which it would not start.
void tell_left_out() noexcept;
/// Whether this is the process that is traced, and not the child of a vfork(2) in its memory.
bool is_own_process() noexcept;
/// After dlclose(3).
void note_unloaded() noexcept;
/// An allocation that the allocator has refused.
void note_failure() noexcept;
/// An allocation that no thread could be begun for: it may have been too early for that.
void note_uncounted() noexcept;

/// What is allocated as long as there is one of these is ours, and not counted.
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

/// The thread, and that it is in a hook until this is gone.  False in a handler of a signal that
/// has interrupted one, and where nothing is traced.
class Hook {
 public:
  Hook() noexcept : thread_(thread_state.thread) {
    if (thread_ == nullptr || !thread_->is_ready) [[unlikely]]
      thread_ = begin_thread();
    if (thread_ == nullptr)
      return;
    if (thread_->is_busy) [[unlikely]] {
      count_up(thread_->tracer->shared.header().dropped);
      thread_ = nullptr;
      return;
    }
    thread_->is_busy = true;
    asm volatile("" ::: "memory");  // for handlers of signals
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
