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
#include "malloctrace/preload/memory/private_memory.h"
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

namespace {

/// State that outlives forks.
struct Process {
  Settings settings;
  bool has_settings;
  bool is_under_valgrind;
  bool has_key;
  std::uint32_t is_off;       ///< accessed by atomics.h only
  bool has_begun;             ///< true also if tracing is off
  std::uint32_t early_count;  ///< allocations before the start
  std::uint32_t pid;          ///< of the tracer's process; 0: none yet
  pthread_key_t key;          ///< for the ends of threads
  Tracer* tracer;
  std::byte* shared;
  OwnScript script;
  ScriptState (*find_script)() noexcept;  ///< nullptr: there is no interpreter
  bool counts_objects;
};
constinit Process
    process{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

/// Adds a thread's walks and memory since the last call to the header.
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

/// The destructor of our key.  The destructors of other keys follow, and then the C library frees
/// its own memory of the thread.  So this asks to be called again as often as possible.  Calls of
/// hooks after the last time are late, and are counted one by one.
void end_thread(void* memory) noexcept {
  auto* thread = static_cast<Thread*>(memory);
  // The thread may be that of a parent process, whose memory may be gone.
  if (thread != thread_state.thread || !thread->is_ready || load_relaxed(process.is_off) != 0)
    return;
  if (++thread_state.destructions < PTHREAD_DESTRUCTOR_ITERATIONS &&
      ::pthread_setspecific(process.key, thread) == 0)
    return;
  thread_state.is_late = true;
  close_thread(*thread);
}

/// False as long as there is no environment: the C library has not started yet.
bool read_settings(const char* const* environment) noexcept {
  if (process.has_settings || environment == nullptr)
    return process.has_settings;
  process.settings = parse_settings(inprocess::text_of_variable(environment, kSettingsVariable));
  process.is_under_valgrind =
      inprocess::find_variable(environment, "LD_PRELOAD").find("/vgpreload_") !=
      std::string_view::npos;
  process.has_settings = true;
  return true;
}

/// Adds the interpreter to the tables and the header; without memory, stacks lack its frames.
void start_scripts(Tracer& tracer) noexcept {
  if (process.find_script == nullptr || !tracer.scripts.start(tracer.shared, process.script))
    return;
  heap::Header& header = tracer.shared.header();
  header.script_layout = process.script.layout;
  header.counts_objects = process.counts_objects ? 1 : 0;
  publish(header.has_script_layout, 1U);
  tracer.has_scripts = true;
}

void fill_header(const Tracer& tracer) noexcept {
  heap::Header& header = tracer.shared.header();
  header.pid = own_pid();
  header.parent_pid = static_cast<std::uint32_t>(::getppid());
  header.start_ns = monotonic_ns();
  ::prctl(PR_GET_NAME, header.command);
  header.sample_bytes = tracer.settings.sample_bytes;
  header.max_depth = tracer.settings.depth;
  header.began_as =
      static_cast<std::uint32_t>(tracer.is_fork ? heap::BeganAs::kFork : heap::BeganAs::kProgram);
  if (!tracer.is_fork)
    header.early = process.early_count + boot_block_count();
  publish(header.magic, heap::kMagic);
}

bool start_tables(Tracer& tracer) noexcept {
  const bool has_shadow = real.is_glibc && tracer.settings.sample_bytes == 0;
  tracer.ledger.start(tracer.shared);
  return tracer.live.start(has_shadow) && tracer.codes.start(tracer.shared, tracer.is_fork) &&
         tracer.sites.start() && tracer.stacks.start(tracer.shared) &&
         tracer.free_slots.map(heap::kMaxThreads);
}

/// The library must not be unloaded while a started thread needs it.
bool make_key() noexcept {
  if (!process.has_key)
    process.has_key = ::pthread_key_create(&process.key, end_thread) == 0;
  return process.has_key;
}

/// Sends the memory; false if the trace is over, or not of this process.
bool send_memory(int fd) noexcept {
  const Link link(process.settings.socket.view());
  if (!link || !link.is_to_parent())
    inprocess::be_silent();
  return link && link.send_file(fd, process.settings.key.view());
}

/// On failure returns false; `failure` then holds the reason, if there is one to report.
bool start_process(bool is_fork, Failure& failure) noexcept {
  // Valgrind's processor is not ours, its allocator replaces all others, and its search for leaks
  // would read everything that we map.
  failure = {"it runs under valgrind", 0};
  if (process.is_under_valgrind)
    return false;
  failure = {"it is built with clang's ThreadSanitizer", 0};
  if (inprocess::is_thread_sanitizer_in_program())
    return false;
  auto* tracer = static_cast<Tracer*>(map_private(sizeof(Tracer)));
  failure = {"no memory", 0};
  if (tracer == nullptr || !make_key())
    return false;
  tracer->settings = process.settings;
  tracer->is_fork = is_fork;
  const auto file =
      inprocess::make_shared_file("malloctrace", heap::kFileBytes, PROT_NONE, failure);
  if (!file)
    return false;
  tracer->shared = SharedMemory(file->base, &tracer->extents);
  process.shared = file->base;
  failure = {"no memory", 0};
  const bool is_started = tracer->extents.start(file->base) && start_tables(*tracer);
  if (is_started) {
    failure = {};
    start_scripts(*tracer);
    fill_header(*tracer);
  }
  const bool is_sent = is_started && send_memory(file->fd);
  ::syscall(SYS_close, file->fd);
  if (is_sent)
    process.tracer = tracer;
  if (is_sent && !is_fork && has_own_malloc())
    inprocess::report_line(
        "malloctrace",
        "has its own malloc, which is called instead of the library's: its blocks are not counted");
  return is_sent;
}

/// Reports to malloctrace; the first process also prints the reason itself.
void explain(const Failure& failure) noexcept {
  if (failure.what == nullptr)
    return;
  const Link link(process.settings.socket.view());
  if (!link)
    return;
  if (link.is_to_parent())
    inprocess::report_failure("malloctrace", "is not traced: ", failure);
  link.send_reason(failure);
}

/// For a process that has one thread, which has not started.
void unmap_all() noexcept {
  process.tracer = nullptr;
  unmap_inherited();
  if (process.shared != nullptr)
    ::syscall(SYS_munmap, process.shared, heap::kFileBytes);
  process.shared = nullptr;
}

void leave_parent() noexcept {
  thread_state.thread = nullptr;
  thread_state.is_late = false;
  thread_state.destructions = 0;
  unmap_all();
}

/// The tracer of this process; nullptr if there is none.
Tracer* running_tracer() noexcept {
  const std::uint32_t pid = own_pid();
  if (process.tracer != nullptr && process.tracer->shared.base() != nullptr)
    return process.tracer;
  if (!read_settings(environ))
    return nullptr;
  if (process.pid == 0 && !process.settings.socket.view().empty())
    inprocess::note_standard_error();
  const bool is_fork = process.pid != 0 && process.pid != pid;
  process.pid = pid;
  if (is_fork) {
    inprocess::be_silent();
    leave_parent();
  }
  const bool is_wanted =
      !process.settings.socket.view().empty() && (!is_fork || process.settings.follows_forks);
  Failure failure;
  store_relaxed(process.is_off, is_wanted ? 0U : 1U);
  if (is_wanted && !start_process(is_fork, failure)) {
    store_relaxed(process.is_off, 1U);
    unmap_all();
    explain(failure);
  }
  process.has_begun = true;
  prepare_filter(load_relaxed(process.is_off) != 0 || process.settings.sample_bytes != 0);
  return load_relaxed(process.is_off) != 0 ? nullptr : process.tracer;
}

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

Thread* make_thread(Tracer& tracer) noexcept {
  auto* thread = static_cast<Thread*>(map_private(sizeof(Thread)));
  if (thread == nullptr)
    return nullptr;
  thread->tracer = &tracer;
  if (!thread->walk.start(tracer.codes, tracer.settings.depth, end_of_stack) ||
      (thread->sums = take_slot(tracer)) == nullptr) {
    thread->walk.stop();
    unmap_private(thread, sizeof(Thread));
    return nullptr;
  }
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
  // Tracing is also off in its children, as long as they run no other program.
  if (load_relaxed(process.is_off) != 0) {
    thread_state.sample_left = kNever;
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
  constexpr std::uint64_t kTellEach = 256;
  if (thread.walk.counts().walks % kTellEach == 0) [[unlikely]]
    report_counts(thread);
  if (stack.hash.bits() == thread.last_stack.bits())
    return thread.last_site;
  std::uint32_t site = thread.tracer->sites.find(stack.hash);
  if (site == 0) [[unlikely]]
    site = stack.depth == 0 ? 0 : add_site(thread, stack, scripts);
  thread.last_stack = stack.hash;
  thread.last_site = site;
  return site;
}

void begin_scripts(const OwnScript& script, ScriptState (*find)() noexcept) noexcept {
  if (!is_own_process())
    return;
  process.script = script;
  process.find_script = find;
  start_scripts(*process.tracer);
}

void note_objects() noexcept {
  process.counts_objects = true;
  if (is_own_process())
    process.tracer->shared.header().counts_objects = 1;
}

void begin_process(const char* const* environment) noexcept {
  if (read_settings(environment))
    static_cast<void>(Hook());
}

void note_end() noexcept {
  Tracer* tracer = process.tracer;
  if (load_relaxed(process.is_off) != 0 || tracer == nullptr || tracer->shared.base() == nullptr ||
      process.pid != own_pid())
    return;
  heap::Header& header = tracer->shared.header();
  if (Thread* thread = thread_state.thread; thread != nullptr && thread->is_ready)
    report_counts(*thread);
  // A process may end twice: exit(3), and _exit(2) in a handler.
  const std::uint64_t bytes = tracer->codes.private_bytes() + tracer->sites.private_bytes() +
                              tracer->stacks.private_bytes() + tracer->live.private_bytes() +
                              tracer->objects.private_bytes() +
                              (tracer->has_scripts ? tracer->scripts.private_bytes() : 0) +
                              tracer->mappings.private_bytes();
  count_up(header.private_bytes, bytes - std::exchange(tracer->told_private_bytes, bytes));
  const inprocess::KeepErrno keep;
  std::array<char, 4096> room;
  store_relaxed(header.resident_peak_bytes,
                inprocess::resident_peak_bytes(inprocess::read_proc("/proc/self/status", room)));
  store_relaxed(header.has_ended, 1U);
}

void stop_for_filter() noexcept {
  if (!is_own_process())
    return;
  note_end();
  store_relaxed(process.tracer->shared.header().is_closed, 1U);
  store_relaxed(process.tracer->is_closed, 1U);
  store_relaxed(process.is_off, 1U);
}

bool is_traced() noexcept { return process.tracer != nullptr; }

bool is_tracers_memory(std::uint64_t start, std::uint64_t end) noexcept {
  const auto shared = reinterpret_cast<std::uint64_t>(process.shared);
  const bool is_shared =
      process.shared != nullptr && start < shared + heap::kFileBytes && shared < end;
  return is_shared || is_private_memory(start, end);
}

bool traces_mmap() noexcept { return process.settings.traces_mmap; }

bool follows_children() noexcept { return process.settings.follows_forks; }

void report_left_out() noexcept {
  const inprocess::KeepErrno keep;
  constexpr int kPatienceS = 1;
  const Link link(process.settings.socket.view(), kPatienceS);
  if (link)
    link.send_reason({"built with AddressSanitizer", 0});
}

bool is_own_process() noexcept {
  return process.tracer != nullptr && load_relaxed(process.is_off) == 0 && process.pid == own_pid();
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
