// SPDX-License-Identifier: MIT
#include "recording/waits/passed_switches.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "stream/build_records.h"
#include "stream/user_copy.h"

namespace pe::waits {

perf_event_attr passed_layout(const perf_event_attr& layout) {
  perf_event_attr attr = layout;
  attr.sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = stream::wanted_user_regs();
  attr.sample_stack_user = unwind::kPassedStackBytes;
  return attr;
}

/// The fields of the record: linux/perf_event.h, PERF_RECORD_SAMPLE.
void PassedSwitches::hold(const unwind::Sample& sample, const unwind::StackOfKernel& kernel_stack,
                          LateCopy copied) {
  const auto& record = sample.record;
  if (record.kind == unwind::kRecordWaitEnded) {
    if (sample.ended != nullptr)
      held_.push_back({record.time_ns, record, {}, *sample.ended, {}, 0, {}});
    return;
  }
  if (sample.registers.empty())
    return;
  chain_.clear();
  if (record.cookie == 0) {
    chains_.add_kernel_part(kernel_stack, chain_);
  } else if (!sample.kernel_stack.frames.empty()) {  // a sample of CPU time
    chain_.push_back(PERF_CONTEXT_KERNEL);
    const auto frames = sample.kernel_stack.frames;
    chain_.insert(chain_.end(), frames.begin(), frames.end());
  }
  const bool in_kernel = !chain_.empty();
  // The copy, padded to whole words.
  const std::size_t room = (sample.memory.size() + 7) / 8 * 8;
  builder_.begin(PERF_RECORD_SAMPLE, in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER)
      .add(id_)
      .add(in_kernel ? chain_[1] : sample.registers.back())
      .add(record.tgid)
      .add(record.tid)
      .add(record.time_ns)
      .add(record.cpu)
      .add(std::uint32_t{0})
      .add(std::uint64_t{1})
      .add(std::uint64_t{chain_.size()})
      .add_bytes(text_of(chain_));
  stream::add_user_regs(builder_, PERF_SAMPLE_REGS_ABI_64, layout_.sample_regs_user,
                        sample.registers);
  builder_.add(std::uint64_t{room});
  builder_.add_bytes({reinterpret_cast<const char*>(sample.memory.data()), sample.memory.size()});
  builder_.add_bytes(std::string(room - sample.memory.size(), '\0'));
  if (room > 0)
    builder_.add(std::uint64_t{sample.memory.size()});
  hold(record, builder_.finish(), std::move(copied));
}

/// Holds a sample, and the stack beyond its copy.  That is read from the process now, while it is
/// unchanged.
void PassedSwitches::hold(const unwind::SampleRecord& record, std::string_view text,
                          LateCopy copied) {
  Held& held = held_.emplace_back(
      Held{record.time_ns, record, std::string(text), {}, {}, 0, std::move(copied)});
  const auto sample =
      stream::parse_sample(stream::view_record(std::as_bytes(std::span(text))), layout_);
  if (!sample)
    return;
  const unwind::Behind behind = stream_.read_behind(*sample);
  held.behind.assign(behind.bytes.begin(), behind.bytes.end());
  held.agreed_bytes = behind.agreed_bytes;
  held_bytes_ += held.sample.size() + held.behind.size();
}

void PassedSwitches::walk_until(std::uint64_t until_ns, const OnWait& on_wait) {
  // The ring is in the order in which room was reserved, which is right after the time was read.
  std::stable_sort(held_.begin(), held_.end(),
                   [](const Held& a, const Held& b) { return a.time_ns < b.time_ns; });
  std::size_t done = 0;
  for (; done < held_.size() && held_[done].time_ns <= until_ns; ++done) {
    Held& held = held_[done];
    walking_ = held.record;
    walking_copy_ = std::move(held.copied);
    held_bytes_ -= std::min(held_bytes_, held.sample.size() + held.behind.size());
    if (held.sample.empty())
      on_wait(held.ended, held.time_ns);
    else
      stream_.write(stream::view_record(std::as_bytes(std::span(held.sample))),
                    {held.behind, held.agreed_bytes});
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(done));
}

Stack& PassedSwitches::place_of(const stream::Sample& sample) {
  if (walking_.cookie != 0)
    return sampled_;
  if (walking_.kind == unwind::kRecordPassedWaker) {
    constexpr std::size_t kMostWakers = 4096, kMostWords = std::size_t{1} << 20;
    waker_words_ += sample.callchain.size();
    while (!wakers_.empty() && (wakers_.size() >= kMostWakers || waker_words_ > kMostWords)) {
      waker_words_ -= wakers_.begin()->second.chain.size();
      wakers_.erase(wakers_.begin());
    }
    return wakers_[{sample.time_ns, sample.tid}];
  }
  Waiting& waiting = waiting_[sample.tid];
  waiting.since_ns = sample.time_ns;
  waiting.copied_ns = walking_copy_.at_ns;
  return waiting.stack;
}

Stack& PassedSwitches::take(const stream::Sample& sample, std::uint16_t misc) {
  Stack& stack = place_of(sample);
  stack = {.ip = sample.ip, .misc = misc, .cpu = sample.cpu};
  stack.chain.resize(sample.callchain.size());
  for (std::size_t i = 0; i < stack.chain.size(); ++i)
    stack.chain[i] = sample.callchain[i];
  return stack;
}

const Stack* PassedSwitches::stack_since(std::uint32_t tid, std::uint64_t since_ns,
                                         std::uint64_t end_ns) const {
  const auto waiting = waiting_.find(tid);
  return waiting != waiting_.end() && waiting->second.since_ns == since_ns &&
                 waiting->second.copied_ns <= end_ns
             ? &waiting->second.stack
             : nullptr;
}

const Stack* PassedSwitches::waker_stack(std::uint32_t tid, std::uint64_t time_ns) const {
  const auto waker = wakers_.find({time_ns, tid});
  return waker != wakers_.end() ? &waker->second : nullptr;
}

/// A later thread may already have the number.
void PassedSwitches::forget_ended() {
  for (const Ended& ended : ended_)
    if (const auto waiting = waiting_.find(ended.tid);
        waiting != waiting_.end() && waiting->second.since_ns <= ended.time_ns)
      waiting_.erase(waiting);
  ended_.clear();
}

unwind::Sum parts_of(const unwind::EndedWait& ended, std::uint64_t end_ns) {
  const auto until_end = [end_ns](std::uint64_t from_ns) {
    return end_ns - std::min(end_ns, from_ns);
  };
  unwind::Sum parts{.ns = until_end(ended.since_ns),
                    .count = 1,
                    .last_ns = end_ns,
                    .ready_ns = until_end(std::max(ended.woken_ns, ended.since_ns)),
                    .silent_ns = 0,
                    .silent_ready_ns = 0};
  if (ended.silent_ns != 0) {
    parts.silent_ns = until_end(ended.silent_ns);
    parts.silent_ready_ns = std::min(parts.silent_ns, parts.ready_ns);
  }
  return parts;
}

OwnProcesses::OwnProcesses(const recording::Target& target)
    : has_all_(target.is_everything), pids_(target.processes.begin(), target.processes.end()) {}

bool OwnProcesses::has(const stream::Record& record) {
  if (has_all_)
    return true;
  switch (record.type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2: {
      const auto mapped = stream::parse_mmap(record);
      return mapped && (mapped->pid == stream::kKernelPid || pids_.contains(mapped->pid));
    }
    case PERF_RECORD_COMM: {
      const auto comm = stream::parse_comm(record);
      return comm && pids_.contains(comm->pid);
    }
    case PERF_RECORD_FORK: {
      const auto task = stream::parse_task(record);
      if (!task)
        return false;
      const bool is_own = pids_.contains(task->parent_pid);
      // A forked process may have the number of one that has ended.
      if (is_own)
        pids_.insert(task->pid);
      else
        pids_.erase(task->pid);
      return is_own;
    }
    case PERF_RECORD_EXIT: {
      const auto task = stream::parse_task(record);
      return task && pids_.contains(task->pid);
    }
    default:
      return true;
  }
}

}  // namespace pe::waits
