// SPDX-License-Identifier: MIT
#include "recording/sigprof/run.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/clock.h"
#include "recording/inprocess/atomics.h"
#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/own_memory.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/inprocess/runtime/tick.h"

namespace pe::inprocess {
namespace {

constexpr std::uint64_t kLongestWaitNs = 100'000'000;

}  // namespace

int Run::begin(const Options& options, int fd, Run*& run) noexcept {
  run = map_pages<Run>(sizeof(Run));
  if (run == nullptr) {
    const KeepErrno keep;
    ::close(fd);
    return SP_SIGPROF_NO_MEMORY;
  }
  run->options_ = options;
  run->pid_ = own_pid();
  run->start_cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  run->sink_.open(fd, run->deadline_ns_);
  run->writer_.open(options, run->sampling_.threads(), run->sink_);
  int result = run->sampling_.begin(options);
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
    error = ::pthread_create(&thread_, &attributes, run_writer, this);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
  }
  errno = error;
  return error == 0 ? SP_SIGPROF_OK : SP_SIGPROF_NO_THREAD;
}

void* Run::run_writer(void* run) noexcept {
  ::prctl(PR_SET_NAME, "sp-sigprof");
  static_cast<Run*>(run)->write_stream();
  return nullptr;
}

void Run::write_stream() noexcept {
  const pid_t tid = own_tid();
  writer_.write_head();
  for (;;) {
    const bool is_last = load_published(is_stopping_) != 0;
    const std::uint64_t now_ns = writer_.begin_pass();
    if (load_published(is_stopping_) == 0)
      sampling_.follow_threads(now_ns, tid);
    writer_.write_pass();
    if (is_last || sink_.state() != Sink::State::kOpen)
      break;
    wait();
  }
  if (sink_.state() == Sink::State::kOpen)
    writer_.finish();
  else
    sampling_.threads().close();  // samples would be lost
  writer_cpu_ns_ = own_cpu_ns();
}

/// Waits until the run stops, or until rings would be three quarters full if every stack had the
/// maximum depth.
void Run::wait() noexcept {
  const std::uint64_t period_ns = options_.period_ns();
  const bool is_cpu = options_.clock == Clock::kCpu;  // the kernel checks it at each tick
  const std::uint64_t shortest_ns = is_cpu ? std::max(period_ns, tick_ns()) : period_ns;
  const std::uint64_t records = options_.ring_bytes / record_bytes(options_.stack_bytes);
  const std::uint64_t ns = std::min(kLongestWaitNs, records * shortest_ns / 4 * 3);
  const timespec time{0, static_cast<long>(ns)};
  ::syscall(SYS_futex, &is_stopping_, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0);
}

void Run::end_writer() noexcept {
  publish(deadline_ns_, monotonic_ns() + options_.stop_ms * kNsPerMs);
  publish(is_stopping_, 1U);
  ::syscall(SYS_futex, &is_stopping_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  ::pthread_join(thread_, nullptr);
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
  return sampling_.is_taken_over() ? SP_SIGPROF_SIGNAL_TAKEN : SP_SIGPROF_OK;
}

void Run::free() noexcept {
  sink_.close();
  sampling_.free();
  ::munmap(this, sizeof(Run));
}

bool Run::is_of_this_process() const noexcept { return pid_ == own_pid(); }

void Run::abandon() noexcept {
  Sampling::end_in_child();
  free();
}

void Run::fill(sp_sigprof_counts& counts) const noexcept {
  const ThreadTable& threads = sampling_.threads();
  const std::uint64_t period_ns = options_.period_ns();
  std::uint64_t taken = 0, taken_weight = 0;
  counts = SP_SIGPROF_COUNTS;
  for (std::uint32_t i = 0; i < threads.used(); ++i) {
    const Thread& thread = threads.slot(i).shared;
    taken += load_relaxed(thread.samples) + load_relaxed(thread.lost_samples);
    taken_weight += load_relaxed(thread.weight) + load_relaxed(thread.lost_weight);
    counts.cut_samples += load_relaxed(thread.cut_samples);
  }
  counts.samples = writer_.samples();
  counts.sampled_ns = writer_.weight() * period_ns;
  counts.lost_samples = taken - writer_.samples();
  counts.lost_ns = (taken_weight - writer_.weight()) * period_ns;
  counts.threads = threads.added();
  counts.threads_refused = threads.refused();
  counts.threads_blocking = writer_.blocking();
  counts.own_cpu_ns = writer_cpu_ns_;
  counts.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ns_ - writer_cpu_ns_;
  counts.bytes = sink_.written_bytes();
}

}  // namespace pe::inprocess
