// SPDX-License-Identifier: MIT
#include "malloctrace/preload/process.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "malloctrace/attach_request.h"
#include "malloctrace/preload/hooks/hooks_new.h"
#include "malloctrace/preload/memory/private_memory.h"
#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/inprocess/runtime/settings_text.h"
#include "recording/inprocess/runtime/thread_sanitizer.h"

namespace pe::malloctrace {

using inprocess::Failure;
using inprocess::Link;
using inprocess::own_pid;

constinit std::uint32_t
    tracing_is_off{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit Process
    process{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

namespace {

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
  const auto began_as = tracer.is_fork        ? heap::BeganAs::kFork
                        : process.is_attached ? heap::BeganAs::kRunning
                                              : heap::BeganAs::kProgram;
  header.began_as = static_cast<std::uint32_t>(began_as);
  if (began_as == heap::BeganAs::kProgram)
    header.early = process.early_count + boot_block_count();
  publish(header.magic, heap::kMagic);
}

bool start_tables(Tracer& tracer) noexcept {
  const bool has_shadow = real.is_glibc && tracer.settings.sample_bytes == 0;
  tracer.ledger.start(tracer.shared);
  return tracer.live.start(has_shadow) && tracer.codes.start(tracer.shared, tracer.is_fork) &&
         tracer.sites.start() && tracer.stacks.start(tracer.shared) &&
         tracer.free_slots.map(heap::kMaxThreads) && tracer.running.map(heap::kMaxThreads);
}

/// The library must not be unloaded while a started thread needs it.
bool make_key() noexcept {
  if (!process.has_key)
    process.has_key = ::pthread_key_create(&process.key, end_thread) == 0;
  return process.has_key;
}

/// Sends the memory; false if the trace is over, or not of this process.
bool send_memory(int fd) noexcept {
  if (process.is_attached) {
    process.attached_fd = fd;
    return true;
  }
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
  if (!is_sent || !process.is_attached)
    ::syscall(SYS_close, file->fd);
  if (is_sent)
    publish(process.tracer, tracer);
  if (is_sent && !is_fork && !process.is_attached && has_own_malloc())
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

void unmap_shared() noexcept {
  if (process.shared != nullptr)
    ::syscall(SYS_munmap, process.shared, heap::kFileBytes);
  process.shared = nullptr;
}

/// No thread may use the memory.
void unmap_all() noexcept {
  process.tracer = nullptr;
  unmap_all_private();
  unmap_shared();
}

void leave_parent() noexcept {
  thread_state.thread = nullptr;
  thread_state.is_late = false;
  thread_state.destructions = 0;
  unmap_all();
}

}  // namespace

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
  store_relaxed(tracing_is_off, is_wanted ? 0U : 1U);
  if (is_wanted && !start_process(is_fork, failure)) {
    store_relaxed(tracing_is_off, 1U);
    unmap_all();
    explain(failure);
  }
  process.has_begun = true;
  prepare_filter(load_relaxed(tracing_is_off) != 0 || process.settings.sample_bytes != 0);
  return load_relaxed(tracing_is_off) != 0 ? nullptr : process.tracer;
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
  if (const InUse use; use && is_own_process())
    process.tracer->shared.header().counts_objects = 1;
}

void begin_process(const char* const* environment) noexcept {
  if (read_settings(environment))
    static_cast<void>(Hook());
}

void note_end() noexcept {
  const InUse use;
  Tracer* tracer = process.tracer;
  if (!use || tracer == nullptr || tracer->shared.base() == nullptr || process.pid != own_pid())
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
  store_relaxed(tracing_is_off, 1U);
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
  return process.tracer != nullptr && load_relaxed(tracing_is_off) == 0 && process.pid == own_pid();
}

namespace {

bool is_alive(std::uint32_t tid) noexcept {
  return tid != 0 && ::syscall(SYS_tgkill, own_pid(), tid, 0) == 0;
}

/// The state of a running thread by its slot; nullptr if it has none.
ThreadState* state_of(const Tracer& tracer, std::uint32_t slot) noexcept {
  ThreadState* state = load_published(tracer.running[slot]);
  return is_alive(load_relaxed(tracer.shared.threads()[slot].tid)) ? state : nullptr;
}

/// Whether no thread uses the tables; after the end of the trace none can begin to.
bool is_unused(const Tracer& tracer) noexcept {
  if (load_published(process.users) != 0)
    return false;
  for (std::uint32_t i = 0; i < tracer.shared.header().threads; ++i) {
    const ThreadState* state = state_of(tracer, i);
    if (state != nullptr && state->thread != nullptr && load_published(state->thread->is_busy))
      return false;
  }
  return true;
}

}  // namespace

int begin_attached(std::string_view settings, Failure& failure) noexcept {
  failure = {"it is traced already", 0};
  if (is_own_process() && !is_abandoned(*process.tracer, kStandstillNs))
    return -1;
  end_attached();
  failure = {"its threads still use the tables of the last trace", 0};
  Released released = Released::kPart;
  while (released == Released::kPart)
    released = release_attached();
  if (released == Released::kNothing)
    return -1;
  process.settings = parse_settings(settings);
  process.settings.follows_forks = false;
  process.has_settings = process.has_begun = process.is_attached = true;
  process.pid = own_pid();
  prepare_filter(process.settings.sample_bytes != 0);
  store_relaxed(tracing_is_off, 1U);
  if (!start_process(false, failure)) {
    unmap_all();
    return -1;
  }
  publish(tracing_is_off, 0U);
  return process.attached_fd;
}

void end_attached() noexcept {
  if (process.tracer != nullptr)
    publish(tracing_is_off, 1U);
}

Released release_attached() noexcept {
  constexpr std::uint32_t kMostAtOnce = 256;
  const std::lock_guard guard(process.release);
  Tracer* tracer = process.tracer;
  if (tracer == nullptr)
    return unmap_all_private(kMostAtOnce) ? Released::kAll : Released::kPart;
  if (!is_unused(*tracer))
    return Released::kNothing;
  for (std::uint32_t i = 0; i < tracer->shared.header().threads; ++i)
    if (ThreadState* state = state_of(*tracer, i); state != nullptr) {
      state->sample_left = 0;
      state->call = {};
      // A hook may be about to look at it, so that this memory stays.
      set_aside_private(state->thread, sizeof(Thread));
    }
  process.tracer = nullptr;
  unmap_shared();
  return Released::kPart;
}

bool is_abandoned(Tracer& tracer, std::uint64_t for_ns) noexcept {
  const std::uint32_t tick = load_relaxed(tracer.shared.header().tick);
  const std::uint64_t now_ns = monotonic_ns();
  if (tick != load_relaxed(tracer.seen_tick) || load_relaxed(tracer.seen_ns) == 0) {
    store_relaxed(tracer.seen_tick, tick);
    store_relaxed(tracer.seen_ns, now_ns);
  }
  return now_ns - load_relaxed(tracer.seen_ns) >= for_ns;
}

}  // namespace pe::malloctrace
