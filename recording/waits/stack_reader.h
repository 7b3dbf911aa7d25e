// Makes stacks of the numbers that the kernel's programs give them.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/cli/closing.h"
#include "languages/common/script_frames.h"
#include "languages/common/script_reader.h"
#include "recording/bpf/bpf_object.h"
#include "recording/bpf/script_publisher.h"
#include "recording/waits/wait_tracker.h"
#include "recording/waits/wait_writer.h"
#include "stream/records/sample.h"
#include "unwind/stacks/stack_counts.h"

namespace pe::waits {

// Counts how the stacks that the kernel has walked ended, and describes the losses for lack of
// room.

class KernelStackCounts {
 public:
  /// Adds `times` waits on a program's stack.
  void add(const unwind::StackOfKernel& stack, std::uint64_t times);
  /// Returns the sums of these stacks and `others`.
  [[nodiscard]] unwind::StackCounts with(const unwind::StackCounts& others) const;
  /// Describes how incomplete stacks ended: "12 ended: too deep".
  [[nodiscard]] std::vector<std::string> ends() const;

 private:
  std::uint64_t stacks_ = 0, complete_ = 0, by_frame_pointer_ = 0, by_leaf_ = 0;
  std::array<std::uint64_t, unwind::kStackStopCount> incomplete_{};
};

/// Adds what had no room in the kernel.  `has_perf`: the perf engine can record the same.
void add_losses(const unwind::Counts& counts, bool has_perf, Closing& closing);

// Puts the frames of interpreters into the stacks of waits and wakers.
//
// The kernel's programs append them to a thread's stack.  They report each such stack once, as soon
// as it is new, because names must be read while the functions exist.

class ScriptStacks {
 public:
  /// Receives a function's record of that time, which must come before samples with the function.
  using OnFunction = std::function<void(std::uint64_t time_ns, const stream::Record& record)>;
  /// `layout` is that of the records' trailers.  Reading draws on `budget`.
  ScriptStacks(const perf_event_attr& layout, Budget& budget, OnFunction on_function)
      : layout_(layout), on_function_(std::move(on_function)), reader_(budget) {
    reader_.keep_ended();
  }

  /// Follows the processes (RecordedStream::lead()).
  [[nodiscard]] languages::ScriptReader& reader() noexcept { return reader_; }
  /// Tells the kernel's programs of interpreters.
  void publish(unwind::BpfObject& object) { publisher_.publish(reader_, object); }

  /// The stream is written until then: functions' records are no older.
  void written_until(std::uint64_t time_ns) noexcept { written_until_ns_ = time_ns; }
  /// Reads the names of a new stack, which `record` (kRecordScript) reports.
  void name(const unwind::SampleRecord& record, const unwind::StackOfKernel& stack) {
    reader_.see(recording::found_script(record));
    named(record.tgid, frames_of(stack), record.time_ns);
  }
  /// Returns the frames of an interpreter that the kernel has appended to a stack.
  static languages::ScriptFrames frames_of(const unwind::StackOfKernel& stack) {
    return recording::script_frames(stack.script, !stack.is_script_cut);
  }
  /// Puts the functions of `frames` into the chain of `into`.
  void merge(std::uint32_t pid, const languages::ScriptFrames& frames, std::uint64_t time_ns,
             Stack& into);
  void describe(Closing& closing) const;

 private:
  const languages::ScriptStack& named(std::uint32_t pid, const languages::ScriptFrames& frames,
                                      std::uint64_t time_ns);

  perf_event_attr layout_;
  OnFunction on_function_;
  languages::ScriptReader reader_;
  recording::ScriptPublisher publisher_;
  languages::ScriptMerger merger_;
  std::uint64_t written_until_ns_ = 0;
};

class StackReader {
 public:
  /// `object` and `scripts` must outlive this.  With `user_only`, wakers have no part in the
  /// kernel.
  StackReader(unwind::BpfObject& object, ScriptStacks& scripts, bool user_only)
      : object_(object), scripts_(scripts), is_user_only_(user_only) {}

  /// Returns the stack of a sample of CPU time that the kernel has walked, and counts it.
  [[nodiscard]] Stack stack_of(const unwind::Sample& sample);
  /// `time_ns` is when the wait ended.
  [[nodiscard]] Stack stack_of(const unwind::SumKey& key, std::uint64_t time_ns);
  /// Returns the stack of the waker with this place among the wakers of a wait, if user space has
  /// walked it; else null.
  using Walked = std::function<const Stack*(std::size_t place, const unwind::Waker&)>;
  /// Returns the wakers of `waits` waits with their number, up to an interrupt, which has pid 0.
  [[nodiscard]] std::vector<WokenBy> wakers(std::uint32_t number, std::uint64_t time_ns,
                                            std::uint64_t waits, const Walked& walked = {});
  /// Counts a program's stack `times` times for counts(); 0 means no stack.
  void count(std::uint32_t user_stack, std::uint64_t times);
  [[nodiscard]] const KernelStackCounts& counts() const noexcept { return counts_; }
  ChainWriter& chains() noexcept { return chains_; }

 private:
  [[nodiscard]] WokenBy waker(const unwind::Waker& waker, std::uint64_t time_ns,
                              std::uint64_t waits, const Stack* walked);
  [[nodiscard]] Stack with_user_part(std::vector<std::uint64_t> kernel_part, std::uint32_t pid,
                                     const unwind::StackOfKernel& user_part, std::uint64_t time_ns);

  unwind::BpfObject& object_;
  ScriptStacks& scripts_;
  bool is_user_only_;
  ChainWriter chains_;
  KernelStackCounts counts_;
};

}  // namespace pe::waits
