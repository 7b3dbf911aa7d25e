// SPDX-License-Identifier: MIT
#include "recording/ptrace/thread_registry.h"

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "recording/ptrace/ptrace_refusal.h"
#include "recording/refused.h"
#include "recording/request.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

/// Converts a number for ptrace(2), which accepts only pointers.
void* number(unsigned long value) {
  return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr)
}

/// Whether the process has ended, or is about to: it has no memory any more.
bool is_ending(pid_t pid) {
  const auto status = stream::status_of(pid);
  return !status || !status->has_memory;
}

bool is_group_stop(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace

bool TracedThread::update_times() {
  const auto times = files.times();
  if (!times)
    return false;
  const bool has_run = times->times_run != seen.times_run;
  if (times->on_cpu_ns > seen.on_cpu_ns)
    credit.add(times->on_cpu_ns - seen.on_cpu_ns);
  seen = *times;
  return has_run;
}

void TracedThread::set_exact(std::uint64_t now_ns) noexcept {
  exact_ns = now_ns;
  exact_busy_ns = seen.on_cpu_ns + seen.waited_ns;
}

/// The rest is time that `seen` has, or in which the thread slept or waits.
std::uint64_t TracedThread::unseen_ns(std::uint64_t now_ns) const noexcept {
  const std::uint64_t elapsed_ns = now_ns - std::min(now_ns, exact_ns);
  return elapsed_ns - std::min(elapsed_ns, seen.on_cpu_ns + seen.waited_ns - exact_busy_ns);
}

void resume(pid_t tid, int signal) {
  ::ptrace(PTRACE_CONT, tid, nullptr, number(static_cast<unsigned long>(signal)));
}

TracedThread* ThreadRegistry::find(pid_t tid) {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? nullptr : &found->second;
}

TracedThread& ThreadRegistry::add(pid_t pid, pid_t tid) {
  const auto [item, is_new] =
      threads_.try_emplace(tid, TracedThread{.pid = pid,
                                             .tid = tid,
                                             .files = {pid, tid},
                                             .credit = CpuCredit(times_.interval_ns()),
                                             .sampled_ns = monotonic_ns()});
  TracedThread& thread = item->second;
  thread.seen = thread.files.times().value_or(thread.seen);
  return thread;
}

/// Returns false if the thread has ended.
bool ThreadRegistry::seize(pid_t pid, pid_t tid, bool follows) {
  const unsigned long options =
      PTRACE_O_TRACEEXEC |
      (follows ? PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK : 0UL);
  if (::ptrace(PTRACE_SEIZE, tid, nullptr, number(options)) == 0) {
    add(pid, tid);
    return true;
  }
  const int error = errno;
  const auto status = stream::status_of(tid);
  if (error == ESRCH || !status || status->state == 'Z' || status->state == 'X')
    return false;
  throw Refused(fmt::format("ptrace: {}: {}", tid, why_not_traced(tid, error)),
                {.is_denied = (error == EPERM || error == EACCES) && status->tracer_pid == 0});
}

/// Attaches all threads, including those that appear meanwhile.  Threads that a traced thread
/// creates are traced automatically.
void ThreadRegistry::attach_process(pid_t pid, bool may_end) {
  bool has_any = false;
  for (bool found_more = true; found_more;) {
    found_more = false;
    for (const pid_t tid : stream::threads_of(pid))
      if (!threads_.contains(tid) && seize(pid, tid, true))
        has_any = found_more = true;
    next_stopped();  // no thread has been asked yet
  }
  if (!has_any && !may_end)
    throw Error(fmt::format("--pid: {}: {}", pid, why_not_found("no such process")));
}

void ThreadRegistry::attach(const Target& target) {
  for (const auto& list : {target.processes, target.threads})
    for (const pid_t tid : list)
      if (!target.may_end(tid) || !is_ending(tid))
        check_traceable(tid);
  if (!target.is_command)  // whose program does not run yet
    for (const pid_t pid : target.processes)
      records_.expect(pid);
  for (const pid_t pid : target.processes)
    attach_process(pid, target.may_end(pid));
  for (const pid_t tid : target.threads) {
    const auto status = stream::status_of(tid);
    if (status)
      seize(status->pid, tid, false);
  }
  if (threads_.empty())
    throw Error(why_not_found("no such process or thread"));
  if (!target.is_command)
    return;
  child_ = target.processes.front();
  for (auto& [tid, thread] : threads_)
    thread.state = TracedThread::State::kHeld;
}

TracedThread* ThreadRegistry::next_stopped() {
  for (int status = 0;;) {
    const pid_t tid = ::waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
    if (tid == 0 || (tid < 0 && errno != EINTR))
      return nullptr;
    if (tid < 0)
      continue;
    if (!WIFSTOPPED(status)) {
      handle_end(tid, status);
      continue;
    }
    TracedThread* const known = find(tid);
    TracedThread& thread = known ? *known : add_unannounced(tid);
    if (handle_stop(thread, status))
      return &thread;
  }
}

/// Adds a thread whose creation is not yet known: the stop of its creator comes later.
TracedThread& ThreadRegistry::add_unannounced(pid_t tid) {
  const auto seen = stream::status_of(tid);
  const pid_t pid = seen ? seen->pid : tid;
  TracedThread& thread = add(pid, tid);
  const pid_t parent = seen && pid == tid ? seen->parent_pid : pid;
  write_birth(pid, tid, parent, parent);
  return thread;
}

/// Returns true if we asked for this stop.  Otherwise it may invalidate `thread`.
bool ThreadRegistry::handle_stop(TracedThread& thread, int status) {
  constexpr int kEventShift = 16;
  const int event = status >> kEventShift;
  const pid_t tid = thread.tid;
  if (event == PTRACE_EVENT_STOP)
    return stand_by(thread, WSTOPSIG(status));
  // ptrace(2), PTRACE_INTERRUPT: if another stop is generated at the same time, only that one
  // happens.
  if (thread.state == TracedThread::State::kAsked)
    thread.state = TracedThread::State::kRunning;
  if (event == PTRACE_EVENT_EXEC)
    handle_exec(thread);
  else if (event != 0)
    handle_birth(thread);
  if (event == PTRACE_EVENT_EXEC && looks_for_leaks(tid))
    leave_alone(tid);
  else
    resume(tid, event == 0 ? WSTOPSIG(status) : 0);  // a signal for the target is forwarded
  return false;
}

void ThreadRegistry::handle_end(pid_t tid, int status) {
  if (tid == child_)
    child_state_.wait_status = status;
  const TracedThread* const thread = find(tid);
  if (!thread)
    return;
  records_.exit(thread->pid, tid, monotonic_ns());
  threads_.erase(tid);
}

/// Handles a stop: one that we requested, that of a new thread at its start, or one by a signal's
/// action.  Returns true for the first, and lets the thread continue after the second.
bool ThreadRegistry::stand_by(TracedThread& thread, int signal) {
  using State = TracedThread::State;
  if (is_group_stop(signal)) {
    thread.state = State::kStopped;
    ::ptrace(PTRACE_LISTEN, thread.tid, nullptr, nullptr);
    return false;
  }
  const bool is_asked = thread.state == State::kAsked;
  if (thread.state != State::kHeld)
    thread.state = State::kRunning;
  if (!is_asked)
    resume(thread.tid, 0);
  return is_asked;
}

void ThreadRegistry::handle_birth(const TracedThread& parent) {
  unsigned long message = 0;
  if (::ptrace(PTRACE_GETEVENTMSG, parent.tid, nullptr, &message) != 0)
    return;
  const auto tid = static_cast<pid_t>(message);
  if (threads_.contains(tid))
    return;
  const std::string as_thread = fmt::format("/proc/{}/task/{}", parent.pid, tid);
  const pid_t pid = ::access(as_thread.c_str(), F_OK) == 0 ? parent.pid : tid;
  write_birth(pid, tid, parent.pid, parent.tid);
  add(pid, tid);
}

void ThreadRegistry::write_birth(pid_t pid, pid_t tid, pid_t parent_pid, pid_t parent_tid) {
  records_.fork({.pid = static_cast<std::uint32_t>(pid),
                 .parent_pid = static_cast<std::uint32_t>(parent_pid),
                 .tid = static_cast<std::uint32_t>(tid),
                 .parent_tid = static_cast<std::uint32_t>(parent_tid)},
                monotonic_ns());
}

/// The other threads of the process are gone, without a report for each.  Invalidates `thread`.
void ThreadRegistry::handle_exec(const TracedThread& thread) {
  const pid_t pid = thread.pid;
  const pid_t tid = thread.tid;
  std::erase_if(threads_, [&](const auto& item) { return item.second.pid == pid; });
  add(pid, tid);
  records_.exec({.pid = pid, .time_ns = monotonic_ns()});
}

/// Detaches a program that would end with another status if it were traced.
void ThreadRegistry::leave_alone(pid_t pid) {
  ::ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
  ++left_alone_;
  threads_.erase(pid);
  records_.exit(pid, pid, monotonic_ns());
  if (pid == child_)
    child_state_.is_waiting = false;
}

}  // namespace pe::recording
