// SPDX-License-Identifier: MIT
#include "inprocess/sigprof/run.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/clock.h"
#include "inprocess/atomics.h"
#include "inprocess/keep_errno.h"
#include "inprocess/runtime/pages.h"
#include "inprocess/runtime/proc_self.h"
#include "inprocess/runtime/timers.h"
#include "inprocess/sigprof/handler.h"

namespace pe::inprocess {
namespace {

int result_of(Added added) noexcept {
  if (added == Added::kAdded || added == Added::kWasThere)
    return SP_SIGPROF_OK;
  if (added == Added::kClosed)
    return SP_SIGPROF_NOT_RUNNING;
  return errno == ENOMEM ? SP_SIGPROF_NO_MEMORY : SP_SIGPROF_NO_TIMER;
}

}  // namespace

int Run::begin(const Options& options, int fd, Run*& run) noexcept {
  run = map_pages<Run>(sizeof(Run));
  if (run == nullptr) {
    const KeepErrno keep;
    ::close(fd);
    return SP_SIGPROF_NO_MEMORY;
  }
  run->open(options, fd);
  int result = run->begin_sampling();
  if (result == SP_SIGPROF_OK)
    result = run->begin_writer();
  if (result == SP_SIGPROF_OK)
    return result;
  const KeepErrno keep;
  run->end_sampling();
  run->free();
  run = nullptr;
  return result;
}

void Run::open(const Options& options, int fd) noexcept {
  options_ = options;
  pid_ = own_pid();
  period_ns_ = kNsPerSecond / options.hz;
  start_cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  threads_.open(options, next_cookie());
  sink_.open(fd, deadline_ns_);
  buffer_.begin_in(room_, sink_);
}

int Run::begin_sampling() noexcept {
  if (!install_handler(threads_))
    return SP_SIGPROF_SIGNAL_TAKEN;
  if (const int result = add_this_thread(); result != SP_SIGPROF_OK)
    return result;
  if (!options_.only_chosen_threads)
    threads_.scan(0, true);
  return SP_SIGPROF_OK;
}

int Run::add_this_thread() noexcept {
  unblock_signal();
  return result_of(threads_.add(own_tid(), own_stack_bounds()));
}

/// Starts the writer with all signals blocked.  Signals of the program are for the program's
/// threads.  Those of a closed pipe or a file at its size limit must not end the program.
int Run::begin_writer() noexcept {
  constexpr std::size_t kStackBytes = 256 * 1024;
  pthread_attr_t attributes;
  sigset_t all, before;
  ::sigfillset(&all);
  int error = ::pthread_attr_init(&attributes);
  if (error == 0) {
    ::pthread_attr_setstacksize(&attributes, kStackBytes);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    error = ::pthread_create(&writer_, &attributes, run_writer, this);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
  }
  errno = error;
  return error == 0 ? SP_SIGPROF_OK : SP_SIGPROF_NO_THREAD;
}

void Run::end_sampling() noexcept {
  if (!is_handler_installed())
    store_relaxed(is_taken_over_, 1U);
  publish(has_ended_sampling_, 1U);
  threads_.close();
  remove_handler();
}

void Run::end_writer() noexcept {
  publish(deadline_ns_, monotonic_ns() + options_.stop_ms * kNsPerMs);
  publish(is_stopping_, 1U);
  ::syscall(SYS_futex, &is_stopping_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  ::pthread_join(writer_, nullptr);
}

int Run::end(sp_sigprof_counts& counts) noexcept {
  fill(counts);
  const int status = result();
  const int error = sink_.error();
  free();
  if (status == SP_SIGPROF_WRITE_FAILED)
    errno = error;
  return status;
}

int Run::result() const noexcept {
  if (sink_.state() == Sink::State::kFailed)
    return SP_SIGPROF_WRITE_FAILED;
  if (sink_.state() == Sink::State::kTooSlow)
    return SP_SIGPROF_READER_SLOW;
  return is_taken_over_ != 0 ? SP_SIGPROF_SIGNAL_TAKEN : SP_SIGPROF_OK;
}

void Run::free() noexcept {
  sink_.close();
  threads_.free_rings();
  ::munmap(this, sizeof(Run));
}

bool Run::is_of_this_process() const noexcept { return pid_ == own_pid(); }

void Run::abandon() noexcept {
  remove_handler_in_child();
  free();
}

void Run::fill(sp_sigprof_counts& counts) const noexcept {
  std::uint64_t taken = 0, taken_weight = 0;
  counts = SP_SIGPROF_COUNTS;
  for (std::uint32_t i = 0; i < threads_.used(); ++i) {
    const Thread& thread = threads_.slot(i).shared;
    taken += load_relaxed(thread.samples) + load_relaxed(thread.lost_samples);
    taken_weight += load_relaxed(thread.weight) + load_relaxed(thread.lost_weight);
    counts.cut_samples += load_relaxed(thread.cut_samples);
  }
  counts.samples = buffer_.written_samples();
  counts.sampled_ns = buffer_.written_weight() * period_ns_;
  counts.lost_samples = taken - buffer_.written_samples();
  counts.lost_ns = (taken_weight - buffer_.written_weight()) * period_ns_;
  counts.threads = threads_.added();
  counts.threads_refused = threads_.refused();
  counts.threads_blocking = blocking_;
  counts.own_cpu_ns = writer_cpu_ns_;
  counts.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ns_ - writer_cpu_ns_;
  counts.bytes = sink_.written_bytes();
}

}  // namespace pe::inprocess
