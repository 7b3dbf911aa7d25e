// The library's state of the process: whether it is traced, by which settings, and into which
// memory.
//
// A program starts with the library (LD_PRELOAD), or the library is loaded while it runs.  In the
// second case tracing may end and begin again.  Its end comes in two steps, because other threads
// may be in a hook: first no hook begins any more, and later, when none is left, the memory goes.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "malloctrace/attach_request.h"
#include "malloctrace/preload/tracer.h"
#include "recording/inprocess/runtime/shared_file.h"

namespace pe::malloctrace {

/// State that outlives forks.
struct Process {
  Settings settings;
  bool has_settings;
  bool is_under_valgrind;
  bool has_key;
  bool is_attached;           ///< the library was loaded while the program ran
  bool has_begun;             ///< true also if tracing is off
  std::uint32_t early_count;  ///< allocations before the start
  std::uint32_t pid;          ///< of the tracer's process; 0: none yet
  std::uint32_t users;        ///< threads that use `tracer` outside of a Hook
  pthread_key_t key;          ///< for the ends of threads
  Tracer* tracer;
  std::byte* shared;
  int attached_fd;  ///< of `shared`, for the process that has attached
  OwnScript script;
  ScriptState (*find_script)() noexcept;  ///< nullptr: there is no interpreter
  bool counts_objects;
  SpinLock release;  ///< held while the memory of a trace goes
};
extern constinit Process
    process;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

/// Keeps the memory of the trace while this exists.  False if tracing is off.
class InUse {
 public:
  InUse() noexcept { __atomic_fetch_add(&process.users, 1U, __ATOMIC_SEQ_CST); }
  InUse(const InUse&) = delete;
  InUse(InUse&&) = delete;
  InUse& operator=(const InUse&) = delete;
  InUse& operator=(InUse&&) = delete;
  ~InUse() { __atomic_fetch_sub(&process.users, 1U, __ATOMIC_SEQ_CST); }

  explicit operator bool() const noexcept { return load_published(tracing_is_off) == 0; }
};

/// The tracer of this process, which is started if necessary; nullptr if there is none.
Tracer* running_tracer() noexcept;
/// Ends the calling thread, of which `memory` is the Thread: the destructor of our key.
void end_thread(void* memory) noexcept;
/// Adds a thread's walks and memory since the last call to the header.
void report_counts(Thread& thread) noexcept;

/// Starts the process by the settings in its environment (as in execve(2)).  The C library may not
/// know its own environment yet.
void begin_process(const char* const* environment) noexcept;

/// Starts to trace a process that runs already.  Returns the descriptor of the shared memory, which
/// the caller must close; -1 and `failure` if the process cannot be traced.
int begin_attached(std::string_view settings, inprocess::Failure& failure) noexcept;
/// Ends that trace.  Threads that are in a hook may still write to its memory.
void end_attached() noexcept;
/// Gives the memory of an ended trace back, some time later.  To be called until it returns
/// Released::kAll; each call takes little time.
Released release_attached() noexcept;
/// Whether the clock of the one who has attached has stood still for so long: it was killed.  To be
/// called now and then.
bool is_abandoned(Tracer& tracer, std::uint64_t for_ns) noexcept;

/// Stacks have the frames of an interpreter from now on, also in forked processes.  `find` returns
/// where the calling thread is in it.
void begin_scripts(const OwnScript& script, ScriptState (*find)() noexcept) noexcept;
/// The blocks of its own allocator count, also in forked processes.
void note_objects() noexcept;

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

}  // namespace pe::malloctrace
