// The library's interface: one profiler per process, and its handlers of fork(2).
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <pthread.h>
#include <stackpipe/sigprof.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/sigprof/options.h"
#include "recording/sigprof/run.h"
#include "recording/sigprof/sampling.h"

namespace pe::inprocess {
namespace {

struct Profiler {
  pthread_mutex_t lock;
  Run* run;
  bool is_ending;  ///< a thread waits, without the lock, until the run's stream is written
  bool watches_forks;
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): there is one SIGPROF
constinit Profiler profiler{PTHREAD_MUTEX_INITIALIZER, nullptr, false, false};

void before_fork() noexcept {
  ::pthread_mutex_lock(&profiler.lock);
  if (profiler.run != nullptr)
    ::pthread_mutex_lock(&profiler.run->fork_lock());
}

void after_fork() noexcept {
  if (profiler.run != nullptr)
    ::pthread_mutex_unlock(&profiler.run->fork_lock());
  ::pthread_mutex_unlock(&profiler.lock);
}

/// Drops the run in a child, which has neither the parent's timers nor its other threads.
void leave_parent() noexcept {
  const KeepErrno keep;
  if (profiler.run != nullptr)
    profiler.run->abandon();
  profiler.run = nullptr;
  profiler.is_ending = false;
}

void begin_child() noexcept {
  leave_parent();
  ::pthread_mutex_init(&profiler.lock, nullptr);
}

/// Protects a thread in the library from pthread_cancel(3).
class NoCancel {
 public:
  NoCancel() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  NoCancel(const NoCancel&) = delete;
  NoCancel(NoCancel&&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;
  NoCancel& operator=(NoCancel&&) = delete;
  ~NoCancel() {
    int ours = 0;
    ::pthread_setcancelstate(before_, &ours);
  }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// Holds the profiler's lock during a call of the library.
class Caller {
 public:
  Caller() noexcept {
    ::pthread_mutex_lock(&profiler.lock);
    if (profiler.run != nullptr && !profiler.run->is_of_this_process())
      leave_parent();
  }
  Caller(const Caller&) = delete;
  Caller(Caller&&) = delete;
  Caller& operator=(const Caller&) = delete;
  Caller& operator=(Caller&&) = delete;
  ~Caller() { ::pthread_mutex_unlock(&profiler.lock); }

 private:
  NoCancel no_cancel_;
};

/// Stops sampling and returns the run; nullptr if there is none, or if another thread stops it.
Run* begin_to_end() noexcept {
  const Caller caller;
  if (profiler.run == nullptr || profiler.is_ending)
    return nullptr;
  profiler.is_ending = true;
  profiler.run->end_sampling();
  return profiler.run;
}

/// Returns a duplicate that programs started by exec(3) do not inherit.  On failure returns -1 and
/// errno, which is EBADF if `fd` is not open for writing.
int own_descriptor(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags == -1 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0) {
    errno = EBADF;
    return -1;
  }
  constexpr int kAboveStandard = 3;
  return ::fcntl(fd, F_DUPFD_CLOEXEC, kAboveStandard);
}

int start(const sp_sigprof_options* asked, int fd) noexcept {
  const auto options = check_options(asked);
  if (!options)
    return SP_SIGPROF_BAD_OPTION;
  if (profiler.run != nullptr)
    return SP_SIGPROF_RUNNING;
  if (!is_signal_free())
    return SP_SIGPROF_SIGNAL_TAKEN;
  std::array<char, 64> room;
  if (read_proc("/proc/self/maps", room).empty())
    return SP_SIGPROF_NO_PROC;
  if (!profiler.watches_forks && ::pthread_atfork(before_fork, after_fork, begin_child) != 0)
    return SP_SIGPROF_NO_MEMORY;
  profiler.watches_forks = true;
  const int own = own_descriptor(fd);
  return own < 0 ? SP_SIGPROF_BAD_FD : Run::begin(*options, own, profiler.run);
}

constexpr std::array<const char*, 12> kTexts{"no error",
                                             "an option is out of range or unknown",
                                             "the descriptor is not open for writing",
                                             "started already",
                                             "not started in this process",
                                             "the program has its own handler for SIGPROF",
                                             "the kernel refused a timer",
                                             "no memory",
                                             "the writer thread could not start",
                                             "the stream could not be written",
                                             "the reader of the stream was too slow",
                                             "/proc/self/maps cannot be read"};
static_assert(kTexts.size() == SP_SIGPROF_NO_PROC + 1);

}  // namespace
}  // namespace pe::inprocess

using pe::inprocess::Caller;
using pe::inprocess::NoCancel;
using pe::inprocess::profiler;

int sp_sigprof_start(const sp_sigprof_options* options, int fd) {
  const Caller caller;
  return pe::inprocess::start(options, fd);
}

int sp_sigprof_add_this_thread(void) {
  const Caller caller;
  return profiler.run == nullptr ? SP_SIGPROF_NOT_RUNNING : profiler.run->add_this_thread();
}

int sp_sigprof_stop(sp_sigprof_counts* counts) {
  const NoCancel no_cancel;
  pe::inprocess::Run* const run = pe::inprocess::begin_to_end();
  if (run == nullptr)
    return SP_SIGPROF_NOT_RUNNING;
  run->end_writer();  // may wait for the reader; a fork must not wait for that
  const Caller caller;
  sp_sigprof_counts counted;
  const int result = run->end(counted);
  profiler.run = nullptr;
  profiler.is_ending = false;
  if (counts != nullptr)
    pe::inprocess::copy_counts(counted, *counts);
  return result;
}

const char* sp_sigprof_error(int result) {
  const auto& texts = pe::inprocess::kTexts;
  return result >= 0 && static_cast<std::size_t>(result) < texts.size()
             ? texts[static_cast<std::size_t>(result)]
             : "an unknown error";
}
