// Stacks that are walked in the kernel, by an eBPF program on each counter: no copies of stacks, no
// limit of their size.
//
//     BpfEngine engine(request);                      loads the programs, or says why not
//     Counters counters(request, target, &engine);    its program on each
//     RecordedStream stream(..., &engine.tables());   keeps tables of code
//     engine.begin(stream, target, read_ns);          from here on there are samples
//     Drain drain(stream, attr, &engine);             takes them, in order with all else
//
// The program finds each process's code in tables, which follow what the rings tell of mappings
// some milliseconds later.  Samples that come earlier, and what only user space can walk, are
// passed on with registers and a piece of the stack, and walked by the stream as copies are.
//
// Where the target is not single processes, a process has tables once it was sampled.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/fd.h"
#include "record/engines/kernel_samples.h"
#include "record/request.h"
#include "record/stream/recorded_stream.h"
#include "unwind/kernel/bpf_object.h"

namespace pe::record {

class BpfEngine {
 public:
  /// Throws Error, which says why the kernel does not walk stacks here.  `cpus`: how many there
  /// are.
  BpfEngine(const Request& request, const Target& target, std::size_t cpus);

  /// Has the samples of a counter walked; `id` is what they are to carry.  Throws Error.
  void attach(const Fd& counter, std::uint64_t id);
  /// Where the target is processes, only those added here have samples, and whoever they fork from
  /// now on.  False if there are too many.
  bool add_target(pid_t pid, unwind::TargetStart start) {
    return object_->add_target(static_cast<std::uint32_t>(pid), start);
  }
  [[nodiscard]] unwind::TableStore& tables() noexcept { return *object_; }
  /// All that is known of the target's mappings is told to the kernel, and samples begin. `read_ns`
  /// (CLOCK_MONOTONIC) is from before those mappings were read.
  void begin(RecordedStream& stream, const Target& target, std::uint64_t read_ns);

  /// Calls `on_record` for all samples that have come, in the layout of the stream's attr.
  void take(RecordedStream& stream, const std::function<void(const stream::Record&)>& on_record);
  /// Tells the kernel what the stream knows by now: of everything before `time_ns`.
  void catch_up(RecordedStream& stream, std::uint64_t time_ns);
  /// Is there something that the next catch_up() will tell the kernel?
  [[nodiscard]] bool is_behind() const noexcept { return !unknown_.empty(); }

  /// To poll: there are many samples.
  [[nodiscard]] int ring_fd() const { return object_->ring_fd(); }
  /// Forked processes that had no room among the targets: they have no samples.
  [[nodiscard]] std::uint64_t not_followed() const { return object_->counts().targets_full; }
  /// Samples that had no room in the ring.
  [[nodiscard]] std::uint64_t lost() const { return object_->counts().ring_full; }
  /// For the closing line: what programs and tables took of our CPU time, how many stacks were
  /// passed on, what did not fit into the kernel's tables.
  [[nodiscard]] std::string describe(RecordedStream& stream) const;

 private:
  void publish(RecordedStream& stream);
  void take_sample(RecordedStream& stream, const unwind::Sample& sample,
                   const std::function<void(const stream::Record&)>& on_record);

  std::unique_ptr<unwind::BpfObject> object_;
  std::optional<KernelSamples> samples_;
  std::unordered_map<std::uint32_t, std::uint64_t> unknown_;  ///< processes, when they were sampled
  std::uint64_t passed_on_ = 0;
  double preparing_s_ = 0;  ///< CPU time that programs and tables took
};

}  // namespace pe::record
