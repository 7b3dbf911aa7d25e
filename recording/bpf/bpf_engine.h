// Walks stacks in the kernel, by an eBPF program on each counter.  This needs no copies of stacks,
// and does not limit their size.
//
//     BpfEngine engine(request, target, cpus);               loads the programs, or throws
//     Counters counters(request, target, &engine.walker());  attaches a program to each counter
//     RecordedStream stream(..., {.tables = &engine.tables(), .reader = &engine.scripts()});
//     engine.begin(stream, target, read_ns);                 sampling starts
//     Drain drain(stream, attr, &engine);                    merges samples and other records
//
// The program finds each process's code in tables.  The tables follow the mappings that the rings
// report, some milliseconds later.  Earlier samples, and those that only user space can walk, are
// passed on with registers and a piece of the stack.  The stream walks them like copies.
//
// If the target is not single processes, a process has tables only after its first sample.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/budget.h"
#include "base/cli/closing.h"
#include "base/fd.h"
#include "recording/bpf/bpf_object.h"
#include "recording/bpf/script_publisher.h"
#include "recording/request.h"
#include "recording/stream/recorded_stream.h"
#include "stream/stream_writer.h"
#include "unwind/walk/frame.h"

namespace pe::recording {

// Converts samples of the kernel's unwinder to PERF_RECORD_SAMPLE records, as the kernel would have
// written them (perf_event_open(2)).  A record has a call chain if the kernel has walked the stack.
// Otherwise it has the registers and the piece of the stack that the kernel passed on.

class KernelSamples {
 public:
  /// `attr` is the layout that counters.h requests, with copies of stacks.
  explicit KernelSamples(const perf_event_attr& attr) : attr_(attr) {}

  /// Returns the record; the sample's `cookie` is its event's id.  Valid until the next call.
  stream::Record record_of(const unwind::Sample& sample);

  /// Returns the user's frames of the last sample; empty if the kernel passed its stack on.
  [[nodiscard]] const std::vector<unwind::Frame>& frames() const noexcept { return frames_; }

 private:
  void add_call_chain(const unwind::Sample& sample);
  void add_copy(const unwind::Sample& sample);

  perf_event_attr attr_;
  stream::RecordBuilder builder_;
  std::vector<unwind::Frame> frames_;
  std::vector<std::uint64_t> chain_;
};

class BpfEngine {
 public:
  /// `cpus` is the number of CPUs.  Reading of interpreters draws on `budget`.  Throws Error with
  /// the reason if the kernel does not walk stacks here.
  BpfEngine(const Request& request, const Target& target, std::size_t cpus, Budget& budget);

  /// Receives the counters' samples.
  [[nodiscard]] unwind::BpfObject& walker() noexcept { return *object_; }
  [[nodiscard]] unwind::TableStore& tables() noexcept { return *object_; }
  /// Returns the reader of the interpreters in the stream's processes.
  [[nodiscard]] languages::ScriptReader& scripts() noexcept { return scripts_; }
  /// The target will start this program: its first samples have the stacks of its interpreter, too.
  /// If it may have a runtime, packs its tables now, for 0.1 s.
  void expect_program(RecordedStream& stream, const std::string& path);
  /// Sends the target's known mappings to the kernel, and starts sampling.  `read_ns`
  /// (CLOCK_MONOTONIC) is a time before those mappings were read.
  void begin(RecordedStream& stream, const Target& target, std::uint64_t read_ns);

  /// Calls `on_record` for all samples that have arrived, in the layout of the stream's attr.
  void take(RecordedStream& stream, const std::function<void(const stream::Record&)>& on_record);
  /// Sends the stream's changes of processes to the kernel.  The stream knows everything before
  /// `time_ns`.  Large programs take 0.1 s; meanwhile calls `meanwhile`, which must take() samples,
  /// every few milliseconds: names must be read while functions exist.
  void catch_up(RecordedStream& stream, std::uint64_t time_ns,
                const std::function<void()>& meanwhile);
  /// Returns whether sampled processes wait for catch_up() to send them to the kernel.
  [[nodiscard]] bool is_behind() const noexcept { return !unknown_.empty(); }

  /// The descriptor to poll; readable when there are many samples.
  [[nodiscard]] int ring_fd() const { return object_->ring_fd(); }
  /// Returns the number of samples that had no room in the ring.
  [[nodiscard]] std::uint64_t lost() const { return object_->counts().ring_full; }
  /// Estimates how long the kernel has walked the stacks of all samples, in nanoseconds, from their
  /// numbers of frames.
  [[nodiscard]] std::uint64_t walked_ns() const noexcept;
  /// Adds our CPU time for programs and tables, the number of stacks passed on, and the losses of
  /// the kernel's tables.
  void describe(RecordedStream& stream, Closing& closing) const;

 private:
  /// A stack in an interpreter, for the sample of the same thread and time.
  struct Script {
    languages::ScriptReader::Found found;
    languages::ScriptFrames stack;
  };

  void publish(RecordedStream& stream, const std::function<void()>& meanwhile);
  void keep_script(const unwind::Sample& sample);
  void add_script(RecordedStream& stream, const unwind::SampleRecord& taken,
                  const std::function<void(const stream::Record&)>& on_record);
  void take_sample(RecordedStream& stream, const unwind::Sample& sample,
                   const std::function<void(const stream::Record&)>& on_record);

  std::unique_ptr<unwind::BpfObject> object_;
  std::optional<KernelSamples> samples_;
  std::unordered_map<std::uint32_t, std::uint64_t> unknown_;  ///< by pid: when it was sampled
  languages::ScriptReader scripts_;
  ScriptPublisher script_publisher_;
  std::unordered_map<std::uint32_t, Script> kept_scripts_;  ///< by tid
  std::vector<std::byte> script_record_;
  std::uint32_t budget_percent_;
  std::uint64_t passed_on_ = 0;
  /// Those that the kernel has walked.
  std::uint64_t native_frames_ = 0, script_frames_ = 0;
  double preparing_s_ = 0;  ///< our CPU time for programs and tables
};

}  // namespace pe::recording
