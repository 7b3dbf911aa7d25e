// The times of threads by the engine perf: on their CPUs, ready, waiting, and when none runs.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>
#include <utility>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "recording/waits/passed_switches.h"
#include "recording/waits/perf_engine.h"
#include "stream/proc/maps.h"
#include "stream/user_copy.h"

namespace pe::waits {
namespace {

std::uint64_t id_of(const stream::Record& record) {
  ByteReader reader(record.body());
  return reader.take<std::uint64_t>().value_or(0);
}

/// Returns a register of a sample, by the kernel's number; 0 if it has none.
std::uint64_t register_of(const stream::Sample& sample, std::uint64_t mask, unsigned number) {
  const auto index =
      static_cast<std::size_t>(std::popcount(mask & ((std::uint64_t{1} << number) - 1)));
  return index < sample.user_regs.size() ? sample.user_regs[index] : 0;
}

}  // namespace

/// Sees each sample before its stack is walked.  Returns whether it is to be walked.
bool PerfEngine::precede(const stream::Record& record) {
  if (!with_cpu_ || !record.is_sample())
    return true;
  const std::uint64_t id = id_of(record);
  if (wakeup_ids_.contains(id)) {
    take_wakeup(record);
    return false;
  }
  facts_ = {};
  facts_.is_of_cpu = cpu_ids_.contains(id);
  if (facts_.is_of_cpu || !stream::has_user_copy(layout_))
    return true;
  const auto sample = stream::parse_sample(record, layout_);
  facts_.has_program = sample && sample->has_user_copy();
  if (facts_.has_program) {
    constexpr unsigned kSi = 4, kDx = 3, kR10 = 18;  // arch/x86/include/uapi/asm/perf_regs.h
    const std::uint64_t mask = layout_.sample_regs_user;
    facts_.arguments = {register_of(*sample, mask, kSi), register_of(*sample, mask, kDx),
                        register_of(*sample, mask, kR10)};
  }
  return true;
}

void PerfEngine::take_wakeup(const stream::Record& record) {
  const auto sample = stream::parse_sample(record, wakeup_layout_);
  if (!sample)
    return;
  ByteReader reader(sample->raw);
  const auto number =
      reader.skip(wakee_field_.offset) ? reader.take<std::uint32_t>() : std::nullopt;
  if (const auto tid = number ? numbers_.tid_of(*number) : std::nullopt)
    tracker_.woken(*tid, sample->time_ns);
}

/// Learns the number by which the record of its waking will name the thread of this switch.
void PerfEngine::learn_number(const stream::Sample& sample) {
  ByteReader reader(sample.raw);
  if (switched_field_.size == 0 || !reader.skip(switched_field_.offset))
    return;
  if (const auto number = reader.take<std::uint32_t>())
    numbers_.learn(*number, sample.tid);
}

void PerfEngine::take_switch(const stream::SwitchRecord& change) {
  if (!with_cpu_ || is_nobody(change.tid))
    return tracker_.switched(change);
  if (change.is_out)
    running_.stop(change.tid, change.time_ns);
  else
    silence_ = running_.start(change.pid, change.tid, change.time_ns);
  if (silence_.is_lost)
    hold_lost(change.pid, change.tid, change.time_ns);
  tracker_.switched(change);
  silence_ = {};
}

/// Holds a time in which no thread is known to have run, though some thread may have.
void PerfEngine::hold_lost(std::uint32_t pid, std::uint32_t tid, std::uint64_t end_ns) {
  const std::uint64_t since_ns = std::exchange(silence_, {}).since_ns;
  if (has_elapsed_time() && since_ns < end_ns)
    recording_->waits.hold({.end_ns = end_ns,
                            .pid = pid,
                            .tid = tid,
                            .length_ns = end_ns - since_ns,
                            .count = 0,
                            .stack = {.misc = PERF_RECORD_MISC_USER},
                            .weight = stream::kLostSilence,
                            .event = kSilenceId});
}

void PerfEngine::hold(const Wait& wait) {
  LateWait late{.end_ns = wait.end_ns,
                .pid = wait.pid,
                .tid = wait.tid,
                .length_ns = wait.length_ns,
                .count = 1,
                .stack = wait.stack,
                .is_unfinished = wait.is_unfinished,
                .weight = with_cpu_ ? wait.weight : 0};
  if (wait.is_unfinished && (!last_unfinished_ || late.length_ns <= last_unfinished_->length_ns))
    last_unfinished_ = late;
  if (!with_cpu_ || wait.is_unfinished)
    return recording_->waits.hold(std::move(late));
  unwind::EndedWait ended{};
  ended.since_ns = wait.end_ns - wait.length_ns;
  ended.woken_ns = wait.woken_ns;
  ended.silent_ns = silence_.since_ns == 0 ? 0 : std::max(silence_.since_ns, ended.since_ns);
  recording_->waits.hold_parts(late, parts_of(ended, wait.end_ns),
                               has_elapsed_time() ? kSilenceId : 0);
}

void PerfEngine::trim(Stack& stack) {
  auto& chain = stack.chain;
  if (user_only_)
    chain.erase(chain.begin(), std::find(chain.begin(), chain.end(), PERF_CONTEXT_USER));
  else
    kinds_.trim(chain);
}

void PerfEngine::hold_cpu_time(const stream::Sample& sample, std::uint16_t misc) {
  if (sample.pid == 0 || is_nobody(sample.tid))
    return;
  const RunningThreads::Silence before = running_.silence();
  const std::uint64_t length_ns =
      running_.sample(sample.pid, sample.tid, sample.time_ns, sample.period);
  if (before.is_lost) {  // it was not seen to come to its CPU
    silence_ = before;
    hold_lost(sample.pid, sample.tid, sample.time_ns);
  }
  Stack stack = stack_of(sample, misc);
  if (user_only_)
    trim(stack);
  running_.keep(sample.tid, stack);
  recording_->waits.hold({.end_ns = sample.time_ns,
                          .pid = sample.pid,
                          .tid = sample.tid,
                          .length_ns = length_ns,
                          .count = 1,
                          .stack = std::move(stack),
                          .weight = running_.count(),
                          .event = kCpuId,
                          .is_sample = true});
}

/// Holds the CPU time of a thread after its last sample, with that sample's stack.
void PerfEngine::hold_rest(const RunningThreads::Rest& rest, std::uint64_t end_ns) {
  if (rest.ns > 0)
    recording_->waits.hold({.end_ns = end_ns,
                            .pid = rest.pid,
                            .tid = rest.tid,
                            .length_ns = rest.ns,
                            .count = 0,
                            .stack = rest.stack,
                            .weight = std::max<std::uint64_t>(1, running_.count()),
                            .event = kCpuId,
                            .is_sample = true});
}

/// Finds the threads that wait since before the recording: none of them is seen to leave its CPU.
void PerfEngine::find_waiting() {
  if (!with_cpu_ || target_.is_command || target_.is_wide())
    return;
  const auto look_at = [this](pid_t pid, pid_t tid) {
    budget_.look(monotonic_ns());
    if (const auto kind = kind_of_waiting(pid, tid))
      tracker_.waits_since(static_cast<std::uint32_t>(pid), static_cast<std::uint32_t>(tid),
                           began_ns_, *kind);
  };
  for (const pid_t pid : target_.processes)
    for (const pid_t tid : stream::threads_of(pid))
      look_at(pid, tid);
  for (const pid_t tid : target_.threads)
    if (const auto status = stream::status_of(tid))
      look_at(status->pid, tid);
}

/// Holds what has not ended: waits, and the time in which no thread has run, as one of the wait
/// that began it.  If no thread waits, all have ended, and the recording's time ended with them.
void PerfEngine::finish_times() {
  const RunningThreads::Silence silence = silence_ = running_.silence();
  std::uint64_t ended_ns = stopped_ns_;
  tracker_.finish(stopped_ns_);
  if (silence.since_ns != 0 && silence.since_ns < stopped_ns_) {
    if (!last_unfinished_) {
      ended_ns = silence.since_ns;
    } else if (silence.is_lost) {
      hold_lost(last_unfinished_->pid, last_unfinished_->tid, stopped_ns_);
    } else if (has_elapsed_time()) {
      last_unfinished_->length_ns = stopped_ns_ - silence.since_ns;
      last_unfinished_->event = kSilenceId;
      recording_->waits.hold(*last_unfinished_);
    }
  }
  if (with_cpu_)
    for (const RunningThreads::Rest& rest : running_.finish(stopped_ns_))
      hold_rest(rest, stopped_ns_);
  recording_->waits.finish(stopped_ns_);
  if (has_elapsed_time())
    recording_->waits.write_whole(kSilenceId, began_ns_, ended_ns, stopped_ns_);
  count();
}

void PerfEngine::count() {
  counts_ = tracker_.counts();
  counts_.samples = recording_->waits.counts().samples;
  counts_.kind_ns = recording_->waits.counts().kind_ns;
}

}  // namespace pe::waits
