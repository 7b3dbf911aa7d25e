// Puts the frames of interpreters into the stacks of waits and wakers.
//
// The kernel's programs append them to a thread's stack.  They report each such stack once, as soon
// as it is new, because names must be read while the functions exist.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "base/cli/closing.h"
#include "languages/common/script_frames.h"
#include "languages/common/script_reader.h"
#include "offcpu/wait_tracker.h"
#include "recording/bpf/bpf_object.h"
#include "recording/bpf/script_publisher.h"
#include "stream/records/sample.h"

namespace pe::offcpu {

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
    named(record.tgid, stack, record.time_ns);
  }
  /// Puts the functions of `stack` into its chain in `into`.
  void merge(std::uint32_t pid, const unwind::StackOfKernel& stack, std::uint64_t time_ns,
             Stack& into);
  void describe(Closing& closing) const;

 private:
  const languages::ScriptStack& named(std::uint32_t pid, const unwind::StackOfKernel& stack,
                                      std::uint64_t time_ns);

  perf_event_attr layout_;
  OnFunction on_function_;
  languages::ScriptReader reader_;
  recording::ScriptPublisher publisher_;
  languages::ScriptMerger merger_;
  std::uint64_t written_until_ns_ = 0;
};

}  // namespace pe::offcpu
