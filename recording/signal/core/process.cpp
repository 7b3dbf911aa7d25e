// SPDX-License-Identifier: MIT
#include "recording/signal/core/process.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>

#include "recording/inprocess/atomics.h"
#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/own_memory.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/inprocess/runtime/settings_text.h"
#include "recording/inprocess/runtime/shared_file.h"
#include "recording/inprocess/runtime/thread_sanitizer.h"
#include "recording/inprocess/runtime/tick.h"
#include "recording/inprocess/runtime/timers.h"
#include "recording/signal/core/handler.h"
#include "recording/signal/core/own_calls.h"
#include "recording/signal/core/slots.h"

namespace pe::inprocess {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
constinit Process process{};

namespace {

/// This thread's slot plus one; 0: none yet.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
constinit thread_local std::uint32_t slot_plus_one __attribute__((tls_model("initial-exec"))) = 0;
/// This thread is claiming a slot, so a handler in it must not claim one.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
constinit thread_local volatile bool is_beginning __attribute__((tls_model("initial-exec"))) =
    false;

/// The count that includes this thread, if it found no slot.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
constinit thread_local std::uint64_t* refused_in __attribute__((tls_model("initial-exec"))) =
    nullptr;

constexpr std::string_view kTool = "pe-record";

/// Returns false as long as there is no environment.
bool read_settings(const char* const* environment) noexcept {
  if (process.has_settings || environment == nullptr)
    return process.has_settings;
  process.settings = parse_settings(text_of_variable(environment, kSettingsVariable));
  process.has_settings = true;
  return true;
}

/// Creates the shared memory, for as many threads as the limits of the process allow.
std::optional<SharedFile> make_memory(Failure& failure) noexcept {
  constexpr std::uint32_t kStep = 4;
  const std::uint32_t most = most_threads(process.settings.clock, process.settings.hz);
  for (std::uint32_t threads = most; threads >= kFewestThreads; threads /= kStep) {
    const std::uint64_t bytes = file_bytes(threads, process.settings.ring_bytes);
    if (bytes > allowed_file_bytes() && threads / kStep >= kFewestThreads)
      continue;
    const auto file = make_shared_file(kMemoryName, bytes, PROT_READ | PROT_WRITE, failure);
    process.max_threads = threads;
    process.shared_bytes = bytes;
    if (file || failure.error != ENOMEM)
      return file;
  }
  return std::nullopt;
}

void fill_header(bool is_fork) noexcept {
  Header& header = process.header();
  const Settings& settings = process.settings;
  header.pid = process.pid;
  header.parent_pid = static_cast<std::uint32_t>(::getppid());
  header.start_ns = last_tick_ns();
  ::prctl(PR_GET_NAME, header.command);
  header.began_as = static_cast<std::uint32_t>(is_fork ? BeganAs::kFork : BeganAs::kProgram);
  header.timer_kind = static_cast<std::uint32_t>(process.timer_kind);
  header.hz = settings.hz;
  header.stack_bytes = settings.stack_bytes;
  header.ring_bytes = settings.ring_bytes;
  header.max_threads = process.max_threads;
  if (is_fork)
    header.script = process.parents_script;
  // The reader of samples may be too late for this text.
  header.maps_bytes = static_cast<std::uint32_t>(
      read_proc("/proc/self/maps",
                {reinterpret_cast<char*>(process.shared + kMapsAt), kMaxMapsBytes})
          .size());
  publish(header.magic, kMagic);
}

bool make_shared(bool is_fork, Failure& failure) noexcept {
  const auto file = make_memory(failure);
  if (!file)
    return false;
  process.shared = file->base;
  fill_header(is_fork);
  // The recorder may have stopped.  The program must not hang because of that.
  constexpr int kPatienceS = 1;
  const Link link(process.settings.socket.view(), kPatienceS);
  const bool is_sent = link && link.send_file(file->fd, process.settings.key.view());
  // ETOOMANYREFS (unix(7)): too many sent files are in transit already.
  if (!is_sent)
    failure = {
        errno == ETOOMANYREFS ? "too many start at once (ulimit -n)" : "cannot reach the recorder",
        errno};
  ::syscall(SYS_close, file->fd);
  return is_sent;
}

/// Maps an array with an element for each slot.  A huge page would cost the memory of 32 threads.
template <typename T>
T* map_for_slots() noexcept {
  const std::size_t bytes = process.max_threads * sizeof(T);
  T* const elements = map_pages<T>(bytes);
  if (elements != nullptr)
    ::syscall(SYS_madvise, elements, bytes, MADV_NOHUGEPAGE);
  return elements;
}

void unmap(void* low, const void* end) noexcept {
  const auto bytes = static_cast<const std::byte*>(end) - static_cast<std::byte*>(low);
  if (bytes > 0)
    ::syscall(SYS_munmap, low, bytes);
}

template <typename T>
void unmap_for_slots(T*& elements) noexcept {
  if (elements != nullptr)
    unmap(elements, elements + process.max_threads);
  elements = nullptr;
}

/// The calling thread may be on the stack that is kept.
void leave_stacks(AddedStack* kept) noexcept {
  AddedStack* const low = process.stacks;
  if (low == nullptr || kept < low || kept >= low + process.max_threads)
    return unmap_for_slots(process.stacks);
  unmap(low, kept);
  unmap(kept + 1, low + process.max_threads);
  process.stacks = nullptr;
}

void leave_memory(AddedStack* kept) noexcept {
  if (process.shared != nullptr)
    unmap(process.shared, process.shared + process.shared_bytes);
  process.shared = nullptr;
  unmap_for_slots(process.own);
  unmap_for_slots(process.script_rooms);
  leave_stacks(kept);
}

/// Keeps the slot that was claimed for the calling thread when it was found.  From now on we notice
/// when the thread ends.  If the thread was counted because it found no slot itself, corrects that
/// count.
void keep_found_slot(std::uint32_t slot) noexcept {
  // pthread_setspecific(3) allocates for higher keys (PTHREAD_KEY_2NDLEVEL_SIZE of glibc).
  constexpr pthread_key_t kPlainKeys = 32;
  store_relaxed(process.own[slot].is_found, 0U);
  slot_plus_one = slot + 1;
  if (std::uint64_t* counted = std::exchange(refused_in, nullptr))
    count_up(*counted, ~std::uint64_t{0});  // one less
  if (process.key < kPlainKeys)
    ::pthread_setspecific(process.key,
                          reinterpret_cast<void*>(std::uintptr_t{slot} + 1));  // NOLINT
}

/// Runs at a thread's end, as the key's destructor.
void end_thread(void* memory) noexcept {
  const auto slot = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(memory)) - 1;
  if (slot + 1 != slot_plus_one || !process.samples() || load_relaxed(process.is_closed) != 0 ||
      !is_own_process())
    return;
  const KeepErrno keep;
  disarm(slot);
  remove_alternate_stack(slot);
  slot_plus_one = 0;
  ::prctl(PR_GET_NAME, process.thread(slot).name);
  release(slot);
}

bool make_key() noexcept {
  if (!process.has_key)
    process.has_key = ::pthread_key_create(&process.key, end_thread) == 0;
  return process.has_key;
}

std::uint32_t begin_this_thread(StackBounds stack) noexcept {
  const pid_t tid = own_tid();
  const std::uint32_t slot = claim_slot(tid);
  if (slot == kNoSlot) {
    // Perhaps the last slot was claimed for this thread already.
    const std::uint32_t found = live_slot_of(tid);
    if (found != kNoSlot) {
      keep_found_slot(found);
      process.own[found].stack = stack;
      return found;
    }
    Header& header = process.header();
    refused_in = is_reader_behind() ? &header.before_reader : &header.without_room;
    count_up(*refused_in);  // the reader counts found threads itself
    return kNoSlot;
  }
  process.own[slot].stack = stack;
  add_alternate_stack(slot);
  ::prctl(PR_GET_NAME, process.thread(slot).name);
  slot_plus_one = slot + 1;
  ::pthread_setspecific(process.key, reinterpret_cast<void*>(std::uintptr_t{slot} + 1));  // NOLINT
  arm(slot, tid);
  return slot;
}

/// Starts to sample the threads that constructors of libraries have started before us.
void begin_earlier_threads() noexcept {
  TaskFolder folder;
  while (const pid_t tid = folder.next())
    begin_found_thread(tid);
}

/// The first thread's timer shows whether the kernel gives us timers of threads.
bool begin_timers(StackBounds stack) noexcept {
  const std::uint32_t slot = begin_this_thread(stack);
  if (slot == kNoSlot)
    return false;
  if (process.own[slot].timer.is_running())
    return true;
  if (process.settings.clock == Clock::kWall)
    return false;
  process.timer_kind = TimerKind::kProcess;
  process.header().timer_kind = static_cast<std::uint32_t>(TimerKind::kProcess);
  store_relaxed(process.own[slot].is_armed, 1U);
  return set_process_timer(process.settings.period_ns());
}

/// `stack` has the bounds of the calling thread's stack.
bool start(bool is_fork, StackBounds stack, Failure& failure) noexcept {
  failure = {"it is built with clang's ThreadSanitizer", 0};
  if (is_thread_sanitizer_in_program())
    return false;
  failure = {"it has a seccomp filter that pe-record does not have", 0};
  if (!is_fork && count_filters() > process.settings.most_filters)
    return false;
  failure = {"no memory", 0};
  process.pid = own_pid();
  process.timer_kind = TimerKind::kThread;
  process.next_slot = 0;
  if (!make_key() || !make_shared(is_fork, failure))
    return false;
  failure = {"no memory", 0};
  process.own = map_for_slots<OwnThread>();
  if (process.own == nullptr)
    return false;
  process.script_rooms = map_for_slots<ScriptRoom>();
  process.stacks = map_for_slots<AddedStack>();
  if (!is_fork)
    process.can_copy = can_copy_own_memory() ? 1 : 0;
  constexpr std::uint64_t kLowHalf = 0xffffffff;
  process.cookie =
      (scattered(last_tick_ns() ^ reinterpret_cast<std::uint64_t>(process.own), kLowHalf) + 1)
      << 32;
  store_relaxed(process.is_sampling, 1U);
  failure = {"cannot handle SIGPROF", 0};
  if (!process.has_handler && !install_handler())
    return false;
  process.has_handler = true;
  failure = {"cannot set a timer", 0};
  if (!begin_timers(stack)) {
    failure.error = errno;
    return false;
  }
  if (!is_fork)
    begin_earlier_threads();
  return true;
}

void start_or_say_why(bool is_fork, StackBounds stack) noexcept {
  Failure failure;
  if (process.settings.socket.view().empty() || start(is_fork, stack, failure))
    return;
  store_relaxed(process.is_sampling, 0U);
  if (failure.error == ECONNREFUSED)
    return;  // the recording is over and does not include this process
  report_failure(kTool, "is not sampled: ", failure);
}

/// Runs in the child of a fork(2), which has one thread and no timers.  An allocator may hold all
/// its locks until later fork handlers have run.
void begin_child() noexcept {
  if (!process.samples())
    return;
  const KeepErrno keep;
  const OwnThread before = slot_plus_one != 0 ? process.own[slot_plus_one - 1] : OwnThread{};
  const bool is_paused = slot_plus_one != 0 && before.is_armed == 0;
  store_relaxed(process.is_sampling, 0U);
  slot_plus_one = 0;
  refused_in = nullptr;
  if (load_relaxed(process.is_closed) == 0 && is_paused)
    count_up(process.header().without_stack);  // the memory is still that of the parent
  if (load_relaxed(process.is_closed) != 0 || is_paused)
    return;
  process.parents_script = process.header().script;
  leave_memory(before.added_stack);
  if (process.settings.follows_forks)
    start_or_say_why(true, before.stack);
  if (slot_plus_one != 0)
    process.own[slot_plus_one - 1].added_stack = before.added_stack;
}

}  // namespace

void begin_process(const char* const* environment) noexcept {
  if (process.has_settings || !read_settings(environment))
    return;
  if (process.settings.socket.view().empty())
    return;
  const KeepErrno keep;
  note_standard_error();
  ::pthread_atfork(nullptr, nullptr, begin_child);
  start_or_say_why(false, own_stack_bounds());
}

void begin_thread() noexcept {
  if (!process.samples() || load_relaxed(process.is_closed) != 0 || !is_own_process() ||
      slot_plus_one != 0)
    return;
  const KeepErrno keep;
  is_beginning = true;
  unblock_for_samples();
  const std::uint32_t slot = begin_this_thread(own_stack_bounds());
  is_beginning = false;
  if (slot != kNoSlot && load_relaxed(process.own[slot].is_armed) == 0) {
    count_up(process.header().without_timer);
    remove_alternate_stack(slot);
    slot_plus_one = 0;
    release(slot);
  }
}

std::uint32_t begin_found_thread(pid_t tid) noexcept {
  const std::uint32_t live = live_slot_of(tid);
  if (live != kNoSlot || load_relaxed(process.is_closed) != 0)
    return live;
  const std::uint32_t slot = claim_slot(tid);
  if (slot == kNoSlot)
    return kNoSlot;
  store_relaxed(process.own[slot].is_found, 1U);
  if (arm(slot, tid))
    return slot;
  if (errno != EINVAL)  // EINVAL: the thread has ended
    count_up(process.header().without_timer);
  release(slot);
  return kNoSlot;
}

void begin_wanted_threads() noexcept {
  for (std::uint32_t& wanted : process.header().wanted_tids) {
    const std::uint32_t tid = __atomic_exchange_n(&wanted, 0U, __ATOMIC_ACQ_REL);
    if (tid != 0)
      begin_found_thread(static_cast<pid_t>(tid));
  }
}

std::uint32_t slot_of_this_thread() noexcept {
  if (slot_plus_one == 0) {
    // A filter that closed the process may forbid gettid(2).
    if (is_beginning || load_relaxed(process.is_closed) != 0)
      return kNoSlot;
    const std::uint32_t slot = begin_found_thread(own_tid());
    if (slot == kNoSlot)
      return kNoSlot;
    keep_found_slot(slot);
  }
  return slot_plus_one - 1;
}

bool is_slot_of_this_thread(std::uint32_t slot) noexcept {
  if (slot_plus_one == slot + 1)
    return true;
  const OwnThread& own = process.own[slot];
  if (load_relaxed(own.is_found) == 0 || load_relaxed(process.is_closed) != 0 ||
      process.thread(slot).tid != static_cast<std::uint32_t>(own_tid()))
    return false;  // the last signal of a stopped timer: the slot may belong to another thread now
  if (is_beginning)
    return false;  // begin_thread() decides which slot it keeps
  if (slot_plus_one == 0) {
    keep_found_slot(slot);
    return true;
  }
  if (process.thread(slot_plus_one - 1).tid != process.thread(slot).tid) {
    // The calling thread uses the thread-local storage of another.  The slot stays claimed, so that
    // the thread is not found again.
    if (load_relaxed(process.own[slot].is_armed) != 0) {
      disarm(slot);
      count_up(process.header().without_variables);
    }
    return false;
  }
  // The thread claimed a slot itself while another thread found it.
  if (own.timer.is_running()) {
    disarm(slot);
    release(slot);
  }
  return false;
}

bool pause_this_thread() noexcept {
  if (slot_plus_one == 0 || !process.samples() || !is_own_process())
    return false;
  if (process.timer_kind == TimerKind::kProcess) {
    stop_process(WhyStopped::kSmallStack);
    return false;
  }
  const bool was_sampled = load_relaxed(process.own[slot_plus_one - 1].is_armed) != 0;
  if (was_sampled)
    disarm(slot_plus_one - 1);
  return was_sampled;
}

void continue_this_thread() noexcept {
  if (slot_plus_one != 0 && process.samples() && load_relaxed(process.is_closed) == 0 &&
      load_relaxed(process.own[slot_plus_one - 1].is_armed) == 0 && is_own_process())
    arm(slot_plus_one - 1, own_tid());
}

AddedStack* added_stack_of_this_thread() noexcept {
  return slot_plus_one != 0 && process.samples() ? process.own[slot_plus_one - 1].added_stack
                                                 : nullptr;
}

void stop_process(WhyStopped why) noexcept {
  if (__atomic_exchange_n(&process.is_sampling, 0U, __ATOMIC_ACQ_REL) == 0)
    return;
  if (process.timer_kind == TimerKind::kProcess)
    set_process_timer(0);
  const std::uint32_t used = std::min(load_relaxed(process.header().threads), process.max_threads);
  for (std::uint32_t slot = 0; slot < used; ++slot)
    if (load_published(process.thread(slot).state) == kLive)
      disarm(slot);
  publish(process.header().why_stopped, static_cast<std::uint32_t>(why));
  constexpr std::array kReasons{
      "", "is no longer sampled: it uses ITIMER_PROF itself",
      "is no longer sampled: its seccomp filter forbids returning from signal handlers",
      "is no longer sampled: an alternate signal stack is too small for a handler"};
  report_line(kTool, kReasons[static_cast<std::size_t>(why)]);
}

bool is_own_process() noexcept {
  return load_relaxed(process.is_closed) != 0 || process.pid == own_pid();
}

}  // namespace pe::inprocess
