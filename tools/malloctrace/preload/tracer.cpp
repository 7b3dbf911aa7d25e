// SPDX-License-Identifier: MIT
#include "malloctrace/preload/tracer.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "malloctrace/preload/hooks/hooks_new.h"
#include "malloctrace/preload/hooks/redirect.h"
#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/process.h"
#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/inprocess/runtime/settings_text.h"
#include "recording/inprocess/runtime/shared_file.h"
#include "recording/inprocess/runtime/thread_sanitizer.h"

namespace pe::malloctrace {

using inprocess::Failure;
using inprocess::Link;
using inprocess::own_pid;
using inprocess::own_tid;

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
constinit thread_local ThreadState thread_state{};

void report_counts(Thread& thread) noexcept {
  heap::Header& header = thread.tracer->shared.header();
  const StackWalk::Counts& now = thread.walk.counts();
  count_up(header.walks, now.walks - thread.told.walks);
  count_up(header.frames_walked, now.walked - thread.told.walked);
  count_up(header.frames_reused, now.reused - thread.told.reused);
  thread.told = now;
  const std::uint64_t bytes =
      sizeof(Thread) + thread.walk.private_bytes() + thread.script.private_bytes();
  count_up(header.private_bytes, bytes - thread.told_private_bytes);
  thread.told_private_bytes = bytes;
}

namespace {

std::uint32_t slot_of(const Thread& thread) noexcept {
  return static_cast<std::uint32_t>(thread.sums - thread.tracer->shared.threads());
}

void close_thread(Thread& thread) noexcept {
  thread.is_busy = true;
  Tracer& tracer = *thread.tracer;
  report_counts(thread);
  thread.account.close();
  const std::uint32_t slot = slot_of(thread);
  {
    const std::lock_guard guard(tracer.threads_lock);
    publish(tracer.running[slot], static_cast<ThreadState*>(nullptr));
    publish(thread.sums->tid, 0U);
    tracer.free_slots[tracer.free_slot_count++] = slot;
  }
  count_up(tracer.shared.header().private_bytes, std::uint64_t{0} - thread.told_private_bytes);
  thread.walk.stop();
  thread.script.stop();
  thread.added.stop();
  thread_state.thread = nullptr;
  unmap_private(&thread, sizeof(Thread));
}

/// Ends a thread after the end of the trace.
void leave_trace(Thread* thread) noexcept {
  const std::lock_guard guard(process.release);
  if (process.tracer != nullptr && thread->tracer == process.tracer)
    publish(process.tracer->running[slot_of(*thread)], static_cast<ThreadState*>(nullptr));
  else if (!thread->is_ready && process.is_attached && process.pid == own_pid())
    unmap_private(thread, sizeof(Thread));
}

}  // namespace

/// The destructors of other keys follow, and then the C library frees its own memory of the thread.
/// So this asks to be called again as often as possible.  Calls of hooks after the last time are
/// late, and are counted one by one.
void end_thread(void* memory) noexcept {
  auto* thread = static_cast<Thread*>(memory);
  // The thread may be that of a parent process, whose memory may be gone.
  if (thread != thread_state.thread)
    return;
  const InUse use;
  if (!use || !thread->is_ready)
    return leave_trace(thread);
  if (++thread_state.destructions < PTHREAD_DESTRUCTOR_ITERATIONS &&
      ::pthread_setspecific(process.key, thread) == 0)
    return;
  thread_state.is_late = true;
  close_thread(*thread);
}

namespace {

heap::ThreadSums* take_slot(Tracer& tracer) noexcept {
  const std::lock_guard guard(tracer.threads_lock);
  heap::Header& header = tracer.shared.header();
  std::uint32_t slot = header.threads;
  if (tracer.free_slot_count != 0)
    slot = tracer.free_slots[--tracer.free_slot_count];
  else if (slot >= heap::kMaxThreads ||
           !tracer.shared.open<heap::ThreadSums>(Section::kThreads, std::uint64_t{slot} + 1))
    return nullptr;
  heap::ThreadSums& sums = tracer.shared.threads()[slot];
  publish(sums.tid, static_cast<std::uint32_t>(own_tid()));
  if (slot == header.threads)
    publish(header.threads, slot + 1);
  if (slot != 0)
    tracer.ledger.begin_threads();
  return &sums;
}

/// Coroutines and signals (alternate stacks) have other stacks than the thread's own.
StackEnd end_of_stack(std::uint64_t sp) noexcept {
  const inprocess::StackBounds& own = thread_state.thread->stack;
  return own.contains(sp) ? StackEnd{own.end} : StackEnd{0, true};
}

/// The zeroed memory of a Thread: that of the last trace, if the thread has some.
Thread* take_memory() noexcept {
  Thread* last = thread_state.thread;
  if (last == nullptr)
    return static_cast<Thread*>(map_private(sizeof(Thread)));
  take_back_private(last, sizeof(Thread));
  return last;
}

Thread* make_thread(Tracer& tracer) noexcept {
  Thread* thread = take_memory();
  if (thread == nullptr)
    return nullptr;
  thread->tracer = &tracer;
  if (!thread->walk.start(tracer.codes, tracer.settings.depth, end_of_stack) ||
      (thread->sums = take_slot(tracer)) == nullptr) {
    thread->walk.stop();
    unmap_private(thread, sizeof(Thread));
    return nullptr;
  }
  publish(tracer.running[slot_of(*thread)], &thread_state);
  thread->account.open(tracer.shared, slot_of(*thread), tracer.ledger);
  thread->stack = inprocess::own_stack_bounds(real.pthread_getattr_np);
  thread->distance.start(reinterpret_cast<std::uint64_t>(thread) ^ monotonic_ns());
  // A forked child continues where its parent was: it has come here at the end of a distance.
  if (tracer.settings.sample_bytes != 0 && thread_state.sample_left == 0)
    thread_state.sample_left = thread->distance.next(tracer.settings.sample_bytes);
  report_counts(*thread);
  thread->is_late = thread_state.is_late;
  if (!thread->is_late)
    ::pthread_setspecific(process.key, thread);
  return thread;
}

}  // namespace

void end_late_thread(Thread& thread) noexcept { close_thread(thread); }

Thread* begin_thread() noexcept {
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  if (thread_state.is_starting)
    return nullptr;
  const InUse use;
  // Tracing is also off in its children, as long as they run no other program.  It may begin again
  // where the library was loaded later.
  if (!use) {
    thread_state.sample_left = process.is_attached ? 0 : kNever;
    return nullptr;
  }
  const inprocess::KeepErrno keep;
  thread_state.is_starting = true;
  Thread* thread = nullptr;
  if (Tracer* tracer = running_tracer()) {
    thread = make_thread(*tracer);
    if (thread == nullptr) {
      count_up(tracer->shared.header().dropped);
      count_up(tracer->shared.header().full);
    } else {
      thread->is_ready = true;
    }
  }
  thread_state.thread = thread;
  thread_state.is_starting = false;
  return thread;
}

namespace {

/// Adds the stack that was walked last, which no thread has added yet.  Its outermost frames are
/// those of the interpreter.
std::uint32_t add_site(Thread& thread, const WalkedStack& stack, std::uint32_t scripts) noexcept {
  Tracer& tracer = *thread.tracer;
  const std::lock_guard guard(tracer.sites_lock);
  if (const std::uint32_t known = tracer.sites.find(stack.hash); known != 0)
    return known;
  const auto code = [&thread, scripts](std::uint32_t number) {
    return number < scripts ? thread.script.code(number) : thread.walk.code(number - scripts);
  };
  const std::uint32_t site =
      tracer.sites.make_room()
          ? tracer.stacks.add(thread.added, slot_of(thread), stack.depth + scripts, code)
          : 0;
  if (site == 0)
    count_up(tracer.shared.header().full);
  else
    tracer.sites.insert(stack.hash, site);
  return site;
}

/// Walks the interpreter's frames and adds them to the stack's hash.  Returns their number.
std::uint32_t walk_script(Thread& thread, WalkedStack& stack) noexcept {
  Tracer& tracer = *thread.tracer;
  if (!tracer.has_scripts || stack.depth == 0) [[likely]]
    return 0;
  const WalkedScript script = thread.script.walk(tracer.scripts, tracer.codes,
                                                 process.find_script(), tracer.settings.depth);
  if (script.depth == 0)
    return 0;
  constexpr unsigned kHalf = 32;
  const std::uint64_t bits = script.hash.bits();
  stack.hash = stack.hash.with(static_cast<std::uint32_t>(bits))
                   .with(static_cast<std::uint32_t>(bits >> kHalf));
  return script.depth;
}

/// With each tick of the reader's clock, looks for objects that were loaded since.
void follow_reader(Tracer& tracer) noexcept {
  const std::uint32_t tick = load_relaxed(tracer.shared.header().tick);
  const std::uint32_t last = load_relaxed(tracer.redirected_tick);
  if (tick != last && change(tracer.redirected_tick, last, tick))
    redirect_new_objects();
}

}  // namespace

std::uint32_t find_site(Thread& thread, const std::uint64_t* frame) noexcept {
  const unwind::FrameState caller{frame[1], reinterpret_cast<std::uint64_t>(frame + 2), frame[0]};
  WalkedStack stack = thread.walk.walk(caller, end_of_stack(caller.sp));
  const std::uint32_t scripts = walk_script(thread, stack);
  heap::Header& header = thread.tracer->shared.header();
  if (thread.walk.is_cut()) [[unlikely]]
    count_up(header.cut_stacks);
  if (thread.walk.is_incomplete()) [[unlikely]]
    count_up(header.incomplete_stacks);
  if (process.is_attached) [[unlikely]]
    follow_reader(*thread.tracer);
  constexpr std::uint64_t kTellEach = 256;
  if (thread.walk.counts().walks % kTellEach == 0) [[unlikely]] {
    report_counts(thread);
    constexpr std::uint64_t kMinuteNs = 60 * kNsPerSecond;
    if (process.is_attached && is_abandoned(*thread.tracer, kMinuteNs))
      end_attached();
  }
  if (stack.hash.bits() == thread.last_stack.bits())
    return thread.last_site;
  std::uint32_t site = thread.tracer->sites.find(stack.hash);
  if (site == 0) [[unlikely]]
    site = stack.depth == 0 ? 0 : add_site(thread, stack, scripts);
  thread.last_stack = stack.hash;
  thread.last_site = site;
  return site;
}

void note_unloaded() noexcept {
  if (const Hook hook; hook)
    hook->tracer->codes.forget_unloaded();
}

void note_uncounted() noexcept {
  if (!process.has_begun && !thread_state.is_starting)
    count_up(process.early_count);
}

void note_failure() noexcept {
  if (const Hook hook; hook)
    count_up(hook->tracer->shared.header().failed);
}

}  // namespace pe::malloctrace
