// SPDX-License-Identifier: MIT
#include "recording/ptrace/tracer.h"

#include <sys/ptrace.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "recording/sample_source.h"

namespace pe::recording {

Tracer::Tracer(const Request& request, EngineRecords& records, TracerOrders& orders, Budget& budget)
    : request_(request),
      records_(records),
      orders_(orders),
      budget_(budget),
      stop_times_(std::max(kNsPerSecond / kMostHz, kNsPerSecond / request.frequency_hz)),
      threads_(stop_times_, records, *orders.child),
      stopper_(request, *records.scripts(), budget),
      random_(static_cast<std::minstd_rand::result_type>(monotonic_ns())) {
  orders_.interval_ns = stop_times_.interval_ns();
}

void Tracer::run() {
  std::uint64_t slot_ns = monotonic_ns();
  std::uint64_t next_ns = slot_ns;
  while (!orders_.is_ending) {
    stopper_.wait_until(orders_.is_sampling ? next_ns : monotonic_ns() + kNsPerSecond);
    sample_stopped();
    if (!orders_.is_sampling || monotonic_ns() < next_ns)
      continue;
    scan();
    // Scans that we missed while we waited for a CPU are compensated gradually.
    constexpr std::uint64_t kMostMissed = 16;
    const std::uint64_t now_ns = monotonic_ns();
    const std::uint64_t period = stop_times_.interval_ns();
    slot_ns = std::max(slot_ns, now_ns - kMostMissed * period) + period;
    next_ns = std::max(slot_ns + place_in_slot_ns(), now_ns + period / 4);
  }
}

/// Returns where the next scan is in its slot, which is one period long.  Random intervals between
/// scans would add up: after 1,000 scans, a thread that runs all the time would be 9 ahead of its
/// CPU time or behind.
std::uint64_t Tracer::place_in_slot_ns() {
  const std::uint64_t period = stop_times_.interval_ns();
  orders_.interval_ns = period;
  orders_.scan_ns =
      is_crowded() ? static_cast<std::uint64_t>(stop_times_.mean_scan_ns()) : std::uint64_t{0};
  orders_.threads = threads_.threads().size();
  orders_.mean_stop_ns = stop_times_.stops() > 0 ? stop_times_.total_ns() / stop_times_.stops() : 0;
  return std::uniform_int_distribution<std::uint64_t>(0, period)(random_);
}

void Tracer::scan() {
  const std::uint64_t before_ns = own_cpu_ns();
  wanted_.clear();
  for (auto& [tid, thread] : threads_.threads())
    if (is_wanted(thread, monotonic_ns()))
      wanted_.push_back(tid);
  stop_times_.add_round(own_cpu_ns() - before_ns);
  for (const pid_t tid : wanted_)
    if (!orders_.is_ending)
      stop(tid);
  stopper_.leave_cpu();
}

/// Whether there are so many threads that a scan takes longer than the kernel's figures are old.
/// Those that run now are then a few of all that have run since the last scan, and are not found.
bool Tracer::is_crowded() const {
  return request_.clock == Clock::kCpu && stop_times_.is_crowded();
}

/// Returns whether the thread must be stopped now.
bool Tracer::is_wanted(TracedThread& thread, std::uint64_t now_ns) {
  if (thread.state != TracedThread::State::kRunning)
    return false;
  const bool is_wall = request_.clock == Clock::kWall;
  const bool has_run = update_times(thread);
  // A thread that slept, and has had no CPU since, still sleeps.
  if (!has_run && !is_wall && (!thread.was_runnable || is_crowded()))
    return false;
  const auto seen = thread.files.state();
  if (!seen)
    return false;
  thread.was_runnable = seen->state == 'R';
  thread.cpu = seen->cpu;
  thread.was_beside_us = CpuPlace::is_on(seen->cpu);
  if (thread.was_runnable)
    return is_wall || thread.credit.is_due(stop_times_.interval_ns(), thread.unseen_ns(now_ns));
  const bool is_asleep = seen->state == 'S' || seen->state == 'D' || seen->state == 'I';
  return is_wall && is_asleep && !repeat_last(thread, now_ns);
}

/// Adds the CPU time that a thread has had, and the time that it has waited for a CPU.  Returns
/// false if the thread is gone, or has not run.
bool Tracer::update_times(TracedThread& thread) {
  const std::uint64_t waited_before_ns = thread.seen.waited_ns;
  const bool has_run = thread.update_times();
  stop_times_.add_wait(thread.seen.waited_ns - waited_before_ns);
  return has_run;
}

/// Returns whether a thread whose CPU we have just occupied is due, and ran until then.  Its
/// figures are exact while it does not run.  If they are those of the scan, it has been waiting for
/// a CPU since before that, unless the scan itself had its CPU.
bool Tracer::is_due_now(TracedThread& thread) {
  const std::uint64_t scanned_ns = thread.seen.on_cpu_ns;
  update_times(thread);
  if (!thread.was_beside_us && thread.seen.on_cpu_ns == scanned_ns)
    return false;
  thread.set_exact(monotonic_ns());
  return thread.credit.is_due(stop_times_.interval_ns());
}

/// Writes a sleeping thread's last sample again, if the thread is still in the same place.
bool Tracer::repeat_last(TracedThread& thread, std::uint64_t now_ns) {
  if (!stopper_.is_unchanged(thread))
    return false;
  CopiedSample again = thread.last->sample;
  again.stack = thread.last->stack;
  again.script = &thread.last->script;
  again.time_ns = now_ns;
  again.period_ns = now_ns - thread.sampled_ns;
  thread.sampled_ns = now_ns;
  records_.sample(again);
  return true;
}

/// Asks a thread to stop, and waits a little for that before the next one is asked.  Otherwise the
/// thread would stay stopped until our next check.
void Tracer::stop(pid_t tid) {
  TracedThread* thread = threads_.find(tid);
  if (!thread || thread->state != TracedThread::State::kRunning)
    return;
  const bool is_in_turn = is_crowded();
  if (!is_in_turn && thread->was_runnable) {
    const bool is_runnable = stopper_.preempt(*thread);
    if (request_.clock == Clock::kCpu && (!is_runnable || !is_due_now(*thread)))
      return;
  }
  thread->asked_ns = monotonic_ns();
  if (::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0)
    return;
  thread->state = TracedThread::State::kAsked;
  if (is_in_turn)
    return;  // it stops when it has a CPU again
  constexpr std::uint64_t kPatienceNs = 1'000'000;
  const std::uint64_t until_ns = thread->asked_ns + kPatienceNs;
  for (; thread && thread->state == TracedThread::State::kAsked && monotonic_ns() < until_ns &&
         !orders_.is_ending;
       thread = threads_.find(tid)) {
    stopper_.wait_until(until_ns);
    sample_stopped();
  }
}

void Tracer::sample_stopped() {
  while (TracedThread* const thread = threads_.next_stopped())
    sample(*thread);
}

/// Decides before it copies, so that a stop without a sample is short.
void Tracer::sample(TracedThread& thread) {
  const std::uint64_t began_ns = stopper_.stop_began_ns();
  const std::uint64_t since_ns = std::max(thread.asked_ns, began_ns);
  if (!is_due_stopped(thread, began_ns)) {
    resume(thread.tid, 0);
    return stop_times_.add_vain_stop(monotonic_ns() - since_ns);
  }
  const std::optional<CopiedSample> sample = stopper_.copy(thread);
  if (!sample)
    return;
  stop_times_.add_stop(sample->time_ns - since_ns, !is_crowded());
  write(thread, *sample);
  stopper_.look_up_stack(thread, *sample);
}

/// Returns whether a thread that has stopped since `began_ns` gives a sample.
bool Tracer::is_due_stopped(TracedThread& thread, std::uint64_t began_ns) {
  const std::uint64_t waited_before_ns = thread.seen.waited_ns;
  update_times(thread);
  thread.set_exact(monotonic_ns());
  if (request_.clock == Clock::kWall)
    return true;
  // The time when the thread lost its CPU, to us or earlier to another thread.
  constexpr std::uint64_t kSlackNs = 200'000;
  const std::uint64_t lost_cpu_ns = began_ns - (thread.seen.waited_ns - waited_before_ns);
  const bool was_waiting = thread.was_runnable && lost_cpu_ns + kSlackNs < thread.arrived_ns;
  // In a crowd, all that are asked have waited.  They stop where they lost their CPU.
  return (!was_waiting || is_crowded()) && thread.credit.is_due(stop_times_.interval_ns());
}

void Tracer::write(TracedThread& thread, CopiedSample sample) {
  const bool is_wall = request_.clock == Clock::kWall;
  sample.period_ns =
      is_wall ? sample.time_ns - thread.sampled_ns : thread.credit.take(stop_times_.interval_ns());
  thread.sampled_ns = sample.time_ns;
  sampled_ns_ += sample.period_ns;
  if (is_wall)
    keep(thread, sample);
  records_.sample(sample);
}

/// Keeps a sample for repeat_last(), if there is room.  Many threads can have deep stacks in the
/// same memory.  Without its last sample, a thread is stopped for the next.
void Tracer::keep(TracedThread& thread, const CopiedSample& sample) {
  constexpr double kForTables = 64.0 * 1024 * 1024;  // of interpreters, which need the same budget
  thread.last.reset();
  const auto pid = static_cast<std::uint32_t>(thread.pid);
  const auto bytes = static_cast<double>(sample.stack.size());
  if (!budget_.may_spend(pid, Resource::kKeptBytes, bytes + kForTables, monotonic_ns()))
    return;
  KeptBytes room(Spender(budget_, pid));
  if (!room.may_add(sample.stack.size()))
    return;
  thread.last = std::make_unique<KeptSample>(
      KeptSample{.sample = sample,
                 .stack = {sample.stack.begin(), sample.stack.end()},
                 .script = sample.script != nullptr ? *sample.script : languages::ScriptFrames{},
                 .room = std::move(room)});
}

}  // namespace pe::recording
