// Puts the frames of interpreters into the stacks of waits and wakers.
//
// The kernel's programs append them to a thread's stack.  They report each such stack once, as soon
// as it is new, because names must be read while the functions exist.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "offcpu/wait_tracker.h"
#include "record/closing.h"
#include "record/engines/kernel/script_publisher.h"
#include "record/stream/script_frames.h"
#include "record/stream/script_reader.h"
#include "stream/records/sample.h"
#include "unwind/kernel/bpf_object.h"

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
  [[nodiscard]] record::ScriptReader& reader() noexcept { return reader_; }
  /// Tells the kernel's programs of interpreters.
  void publish(unwind::BpfObject& object) { publisher_.publish(reader_, object); }

  /// The stream is written until then: functions' records are no older.
  void written_until(std::uint64_t time_ns) noexcept { written_until_ns_ = time_ns; }
  /// Reads the names of a new stack, which `record` (kRecordScript) reports.
  void name(const unwind::SampleRecord& record, const unwind::StackOfKernel& stack) {
    reader_.see(record::found_script(record));
    named(record.tgid, stack, record.time_ns);
  }
  /// Puts the functions of `stack` into its chain in `into`.
  void merge(std::uint32_t pid, const unwind::StackOfKernel& stack, std::uint64_t time_ns,
             Stack& into);
  void describe(record::Closing& closing) const;

 private:
  const record::ScriptStack& named(std::uint32_t pid, const unwind::StackOfKernel& stack,
                                   std::uint64_t time_ns);

  perf_event_attr layout_;
  OnFunction on_function_;
  record::ScriptReader reader_;
  record::ScriptPublisher publisher_;
  record::ScriptMerger merger_;
  std::uint64_t written_until_ns_ = 0;
};

}  // namespace pe::offcpu
