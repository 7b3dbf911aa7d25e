// SPDX-License-Identifier: MIT
#include "record/engines/tracer.h"

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "record/engines/ptrace_refusal.h"
#include "record/engines/refused.h"
#include "record/engines/sample_source.h"
#include "stream/proc/maps.h"
#include "stream/proc/memory.h"

namespace pe::record {
namespace {

/// Deeper stacks are cut.
constexpr std::uint64_t kMostStackBytes = 8UL * 1024 * 1024;

/// Converts a number for ptrace(2), which accepts only pointers.
void* number(unsigned long value) {
  return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr)
}

bool is_group_stop(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/// Returns false if the thread has been killed meanwhile.
bool read_registers(pid_t tid, CopiedSample& sample) {
#if defined(__x86_64__)
  user_regs_struct r{};
  if (::ptrace(PTRACE_GETREGS, tid, nullptr, &r) != 0)
    return false;
  constexpr unsigned long kUserCode32 = 0x23;  // arch/x86/include/asm/segment.h, __USER32_CS
  sample.is_64_bit = r.cs != kUserCode32;
  sample.registers = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                      r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
  return true;
#else
  (void)tid;
  (void)sample;
  return false;
#endif
}

/// Returns whether `sp` is in the stack, or in memory that the stack may have grown into since.
bool is_within(const unwind::MemoryRange& stack, std::uint64_t sp) {
  constexpr std::uint64_t kGrown = 2UL * 1024 * 1024;
  return sp < stack.end && sp >= stack.start - std::min(stack.start, kGrown);
}

constexpr std::size_t kStackPointer = 7;
constexpr std::size_t kInstruction = 16;

}  // namespace

Tracer::Tracer(const Request& request, EngineRecords& records, TracerOrders& orders)
    : request_(request),
      records_(records),
      orders_(orders),
      wanted_ns_(std::max(kNsPerSecond / kMostHz, kNsPerSecond / request.frequency_hz)),
      own_files_(::getpid(), ::gettid()),
      random_(static_cast<std::minstd_rand::result_type>(monotonic_ns())),
      copy_(kMaxStackBytes) {
  orders_.interval_ns = wanted_ns_;
}

Tracer::Thread& Tracer::add(pid_t pid, pid_t tid) {
  const auto [item, is_new] = threads_.try_emplace(tid, Thread{.pid = pid,
                                                               .tid = tid,
                                                               .files = {pid, tid},
                                                               .credit = CpuCredit(period_ns()),
                                                               .sampled_ns = monotonic_ns()});
  Thread& thread = item->second;
  thread.seen = thread.files.times().value_or(thread.seen);
  return thread;
}

/// Returns false if the thread has ended.
bool Tracer::seize(pid_t pid, pid_t tid, bool follows) {
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
  throw Refused(fmt::format("ptrace: {}: {}", tid, why_not_traced(tid, error)));
}

/// Attaches all threads, including those that appear meanwhile.  Threads that a traced thread
/// creates are traced automatically.
void Tracer::attach_process(pid_t pid) {
  bool has_any = false;
  for (bool found_more = true; found_more;) {
    found_more = false;
    for (const pid_t tid : stream::threads_of(pid))
      if (!threads_.contains(tid) && seize(pid, tid, true))
        has_any = found_more = true;
    take_stops();
  }
  if (!has_any)
    throw Error(fmt::format("--pid: {}: {}", pid, why_not_found("no such process")));
}

void Tracer::attach(const Target& target) {
  for (const auto& list : {target.processes, target.threads})
    for (const pid_t tid : list)
      check_traceable(tid);
  for (const pid_t pid : target.processes)
    attach_process(pid);
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
    thread.state = State::kHeld;
}

void Tracer::run() {
  std::uint64_t due_ns = monotonic_ns();
  std::uint64_t next_ns = due_ns;
  while (!orders_.is_ending) {
    wait_until(orders_.is_sampling ? next_ns : monotonic_ns() + kNsPerSecond);
    take_stops();
    if (!orders_.is_sampling || monotonic_ns() < next_ns)
      continue;
    look_around();
    // Scans that we missed while we waited for a CPU are compensated gradually.
    constexpr std::uint64_t kMostMissed = 16;
    const std::uint64_t now_ns = monotonic_ns();
    const std::uint64_t period = period_ns();
    due_ns = std::max(due_ns, now_ns - kMostMissed * period) + next_interval_ns();
    next_ns = std::max(due_ns, now_ns + period / 4);
  }
}

/// Returns a random interval, from a half to one and a half of the period.
std::uint64_t Tracer::next_interval_ns() {
  const std::uint64_t period = period_ns();
  orders_.interval_ns = period;
  orders_.mean_stop_ns = stop_times_.stops() > 0 ? stop_times_.total_ns() / stop_times_.stops() : 0;
  return period / 2 + std::uniform_int_distribution<std::uint64_t>(0, period)(random_);
}

/// Waits until `time_ns`, or until a thread stops or ends.
void Tracer::wait_until(std::uint64_t time_ns) {
  const std::uint64_t now_ns = monotonic_ns();
  const std::uint64_t left_ns = time_ns > now_ns ? time_ns - now_ns : 0;
  const timespec left = timespec_of(left_ns);
  sigset_t ended;
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  own_waited_ns_ = own_files_.times().value_or(stream::ThreadTimes{}).waited_ns;
  ::sigtimedwait(&ended, nullptr, &left);
  woken_ns_ = monotonic_ns();
}

void Tracer::take_stops() {
  int status = 0;
  for (;;) {
    const pid_t tid = ::waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
    if (tid > 0)
      take_stop(tid, status);
    else if (tid == 0 || errno != EINTR)
      return;
  }
}

void Tracer::take_stop(pid_t tid, int status) {
  if (!WIFSTOPPED(status))
    return take_end(tid, status);
  auto known = threads_.find(tid);
  if (known == threads_.end()) {
    // The stop of its creator, which reports it, comes later.
    const auto seen = stream::status_of(tid);
    const pid_t pid = seen ? seen->pid : tid;
    add(pid, tid);
    known = threads_.find(tid);
    const pid_t parent = seen && pid == tid ? seen->parent_pid : pid;
    write_birth(pid, tid, parent, parent);
  }
  constexpr int kEventShift = 16;
  const int event = status >> kEventShift;
  if (event == 0)
    resume(tid, WSTOPSIG(status));  // a signal for the target: forwarded
  else
    take_event(known->second, event, WSTOPSIG(status));
}

void Tracer::take_end(pid_t tid, int status) {
  if (tid == child_)
    orders_.child->wait_status = status;
  const auto thread = threads_.find(tid);
  if (thread == threads_.end())
    return;
  records_.exit(thread->second.pid, tid, monotonic_ns());
  threads_.erase(thread);
}

void Tracer::take_event(Thread& thread, int event, int signal) {
  const pid_t tid = thread.tid;
  if (event == PTRACE_EVENT_STOP)
    return stand_by(thread, signal);
  if (event != PTRACE_EVENT_EXEC)
    take_birth(thread);
  else if (take_exec(thread); looks_for_leaks(tid))
    return leave_alone(tid);
  resume(tid, 0);
}

/// Detaches a program that would end with another status if it were traced.
void Tracer::leave_alone(pid_t pid) {
  ::ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
  ++left_alone_;
  threads_.erase(pid);
  records_.exit(pid, pid, monotonic_ns());
  if (pid == child_)
    orders_.child->is_waiting = false;
}

void Tracer::take_birth(const Thread& parent) {
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

void Tracer::write_birth(pid_t pid, pid_t tid, pid_t parent_pid, pid_t parent_tid) {
  records_.fork({.pid = static_cast<std::uint32_t>(pid),
                 .parent_pid = static_cast<std::uint32_t>(parent_pid),
                 .tid = static_cast<std::uint32_t>(tid),
                 .parent_tid = static_cast<std::uint32_t>(parent_tid)},
                monotonic_ns());
}

/// The other threads of the process are gone, without a report for each.  Invalidates `thread`.
void Tracer::take_exec(const Thread& thread) {
  const pid_t pid = thread.pid;
  const pid_t tid = thread.tid;
  std::erase_if(threads_, [&](const auto& item) { return item.second.pid == pid; });
  add(pid, tid);
  records_.exec({.pid = pid, .time_ns = monotonic_ns()});
}

/// Handles a stop: one that we requested, that of a new thread at its start, or one by a signal's
/// action.
void Tracer::stand_by(Thread& thread, int signal) {
  if (is_group_stop(signal)) {
    thread.state = State::kStopped;
    ::ptrace(PTRACE_LISTEN, thread.tid, nullptr, nullptr);
    return;
  }
  const bool is_asked = thread.state == State::kAsked;
  if (thread.state != State::kHeld)
    thread.state = State::kRunning;
  if (is_asked)
    return sample(thread);
  resume(thread.tid, 0);
}

/// A failure means that the thread has been killed, which wait(2) reports.
void Tracer::resume(pid_t tid, int signal) {
  ::ptrace(PTRACE_CONT, tid, nullptr, number(static_cast<unsigned long>(signal)));
}

void Tracer::sample(Thread& thread) {
  CopiedSample sample{.pid = thread.pid, .tid = thread.tid, .cpu = thread.cpu};
  const bool is_alive = read_registers(thread.tid, sample);
  const std::uint64_t sp = sample.registers[kStackPointer];
  const std::size_t copied = is_alive && sample.is_64_bit ? copy_stack(thread, sp) : 0;
  resume(thread.tid, 0);
  sample.time_ns = monotonic_ns();
  if (!is_alive)
    return;
  const std::uint64_t began_ns = stop_began_ns();
  stop_times_.add_stop(sample.time_ns - std::max(thread.asked_ns, began_ns));
  const std::uint64_t waited_before_ns = thread.seen.waited_ns;
  update_times(thread);
  // The time when the thread lost its CPU, to us or earlier to another thread.
  constexpr std::uint64_t kSlackNs = 200'000;
  const std::uint64_t lost_cpu_ns = began_ns - (thread.seen.waited_ns - waited_before_ns);
  const bool was_waiting = thread.was_runnable && lost_cpu_ns + kSlackNs < thread.arrived_ns;
  if (was_waiting && request_.clock == Clock::kCpu)
    return;
  sample.stack = Bytes(copy_).first(copied);
  hand_over(thread, sample);
  look_up_stack(thread, sp, copied);
}

/// Returns the latest time at which a thread that is found stopped has stopped.  It woke us, but we
/// had to wait for a CPU.
std::uint64_t Tracer::stop_began_ns() const {
  const std::uint64_t waited_ns = own_files_.times().value_or(stream::ThreadTimes{}).waited_ns;
  return woken_ns_ - std::min(woken_ns_, waited_ns - std::min(waited_ns, own_waited_ns_));
}

/// Copies up to the stack's end, if that is known, or else a whole copy.  Returns the number of
/// bytes.
std::size_t Tracer::copy_stack(const Thread& thread, std::uint64_t sp) {
  const bool is_known = is_within(thread.stack, sp);
  std::uint64_t wanted = request_.stack_bytes.value_or(kMaxStackBytes);
  if (is_known && !request_.stack_bytes && request_.may_continue)
    wanted = std::min(thread.stack.end - sp, kMostStackBytes);
  return stream::read_memory(thread.tid, sp,
                             std::span(copy_).first(std::min(wanted, copy_.size())));
}

/// After a full copy: finds out how large it could have been, for the next time.
void Tracer::look_up_stack(Thread& thread, std::uint64_t sp, std::size_t copied) {
  if (copied < kMaxStackBytes || request_.stack_bytes || !request_.may_continue)
    return;
  constexpr std::uint64_t kBetweenNs = 20'000'000;  // for threads that alternate between stacks
  const std::uint64_t now_ns = monotonic_ns();
  const bool is_known = is_within(thread.stack, sp);
  if (!is_known && now_ns - thread.stack_read_ns > kBetweenNs) {
    thread.stack = mapped_.at(static_cast<std::uint32_t>(thread.pid), sp);
    thread.stack_read_ns = now_ns;
  }
  // Grows the buffer here, because first access to new memory is slow, and no thread is stopped
  // now.
  const std::uint64_t deep = thread.stack.end - std::min(thread.stack.end, sp);
  if (copy_.size() < deep)
    copy_.resize(std::min(2 * deep, kMostStackBytes));
}

void Tracer::hand_over(Thread& thread, CopiedSample sample) {
  const std::uint64_t period = period_ns();
  sample.period_ns = request_.clock == Clock::kWall ? sample.time_ns - thread.sampled_ns
                                                    : thread.credit.take(period);
  thread.sampled_ns = sample.time_ns;
  if (request_.clock == Clock::kWall)
    thread.last = std::make_unique<KeptSample>(
        KeptSample{sample, {sample.stack.begin(), sample.stack.end()}});
  records_.sample(sample);
}

/// Adds the CPU time since the last call.  Returns false if the thread is gone, or has not run.
bool Tracer::update_times(Thread& thread) {
  const auto times = thread.files.times();
  if (!times)
    return false;
  const bool has_run = times->times_run != thread.seen.times_run;
  if (times->on_cpu_ns > thread.seen.on_cpu_ns)
    thread.credit.add(times->on_cpu_ns - thread.seen.on_cpu_ns);
  thread.seen = *times;
  return has_run;
}

/// Returns whether the thread must be stopped now.
bool Tracer::is_wanted(Thread& thread, std::uint64_t now_ns) {
  if (thread.state != State::kRunning)
    return false;
  const bool is_wall = request_.clock == Clock::kWall;
  const bool has_run = update_times(thread);
  // A thread that slept, and has had no CPU since, still sleeps.
  if (!has_run && !thread.was_runnable && !is_wall)
    return false;
  const auto seen = thread.files.state();
  if (!seen)
    return false;
  thread.was_runnable = seen->state == 'R';
  thread.cpu = seen->cpu;
  if (thread.was_runnable)
    return is_wall || thread.credit.is_due(period_ns());
  const bool is_asleep = seen->state == 'S' || seen->state == 'D' || seen->state == 'I';
  return is_wall && is_asleep && !repeat_last(thread, now_ns);
}

/// Writes a sleeping thread's last sample again, if the thread is still in the same place.
bool Tracer::repeat_last(Thread& thread, std::uint64_t now_ns) {
  const auto at = thread.last ? stream::blocked_at(thread.pid, thread.tid) : std::nullopt;
  if (!at || at->sp != thread.last->sample.registers[kStackPointer] ||
      at->ip != thread.last->sample.registers[kInstruction])
    return false;
  const std::vector<std::byte>& before = thread.last->stack;
  if (copy_.size() < before.size())
    return false;
  const auto now = std::span(copy_).first(before.size());
  if (stream::read_memory(thread.tid, at->sp, now) != before.size() ||
      !std::equal(now.begin(), now.end(), before.begin()))
    return false;
  CopiedSample again = thread.last->sample;
  again.stack = thread.last->stack;
  again.time_ns = now_ns;
  again.period_ns = now_ns - thread.sampled_ns;
  thread.sampled_ns = now_ns;
  records_.sample(again);
  return true;
}

void Tracer::look_around() {
  const std::uint64_t before_ns = own_cpu_ns();
  wanted_.clear();
  for (auto& [tid, thread] : threads_)
    if (is_wanted(thread, monotonic_ns()))
      wanted_.push_back(tid);
  stop_times_.add_round(own_cpu_ns() - before_ns);
  for (const pid_t tid : wanted_)
    ask(tid);
  place_.stand_anywhere();
}

/// Asks a thread to stop, and waits a little for that before the next one is asked.  Otherwise the
/// thread would stay stopped until our next check.
void Tracer::ask(pid_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end() || found->second.state != State::kRunning)
    return;
  Thread& thread = found->second;
  if (thread.was_runnable && !is_still_there(thread) && request_.clock == Clock::kCpu)
    return;
  thread.asked_ns = monotonic_ns();
  if (::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0)
    return;
  thread.state = State::kAsked;
  constexpr std::uint64_t kPatienceNs = 1'000'000;
  const std::uint64_t until_ns = thread.asked_ns + kPatienceNs;
  for (auto it = found; it != threads_.end() && it->second.state == State::kAsked &&
                        monotonic_ns() < until_ns && !orders_.is_ending;
       it = threads_.find(tid)) {
    wait_until(until_ns);
    take_stops();
  }
}

/// Migrates to the thread's CPU to preempt it; false if it is no longer runnable.
bool Tracer::is_still_there(Thread& thread) {
  constexpr int kTries = 2;  // the thread may be moved while we migrate
  for (int i = 0; i < kTries; ++i) {
    thread.arrived_ns = CpuPlace::is_on(thread.cpu) ? woken_ns_ : monotonic_ns();
    if (!place_.stand_on(thread.cpu))
      return true;
    const auto seen = thread.files.state();
    if (!seen || seen->state != 'R')
      return false;
    if (seen->cpu == thread.cpu)
      return true;
    thread.cpu = seen->cpu;
  }
  return true;
}

}  // namespace pe::record
