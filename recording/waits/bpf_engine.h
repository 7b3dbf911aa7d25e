// Waits from eBPF programs in the kernel.  The programs walk stacks and sum up, by thread and
// stack, how long threads were off their CPUs.  This engine reads the sums each second and makes
// samples of them; ten times each second if it also samples CPU time.
//
// Counters that count nothing report the changes of processes, so that the kernel's unwind tables
// are kept up to date (recording/bpf/code_tables.h).  That takes some milliseconds for new code.
// Stacks that the kernel cannot walk meanwhile come as copies, and are walked here
// (passed_switches.h).
//
// A sum becomes one sample, at the end of its last wait.  Records of processes are held back until
// the sums before them have been read, so that the stream is in the order of time.
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "recording/bpf/bpf_object.h"
#include "recording/bpf/code_tables.h"
#include "recording/counters/counters.h"
#include "recording/probes/marks.h"
#include "recording/stream/drain.h"
#include "recording/stream/recorded_stream.h"
#include "recording/waits/engine.h"
#include "recording/waits/ordered_waits.h"
#include "recording/waits/passed_switches.h"
#include "recording/waits/stack_reader.h"

namespace pe::waits {

class BpfEngine final : public Engine {
 public:
  using Object = std::unique_ptr<unwind::BpfObject>;

  /// Returns which part of the target this engine cannot record; empty if none.
  static std::string why_unable(const recording::Target& target);
  /// Throws Error.
  BpfEngine(const Options& options, const recording::Target& target, Object object, Budget& budget);

  /// The other counters have no rate.
  [[nodiscard]] const std::vector<std::string>& notes() const override {
    return samplers_ ? samplers_->notes() : counters_.notes();
  }
  std::uint64_t begin(Output& out) override;
  void expect(const std::string& program) override { scripts_.reader().expect(program); }
  void write_running_state() override;
  [[nodiscard]] const std::vector<int>& fds() const override { return fds_; }
  std::optional<std::uint64_t> pass() override;
  void stop() override;
  void finish() override;
  [[nodiscard]] const WaitCounts& counts() const override { return recording_->waits.counts(); }
  [[nodiscard]] std::size_t threads() const override { return threads_seen_.size(); }
  [[nodiscard]] std::uint64_t lost() const override;
  [[nodiscard]] unwind::StackCounts stacks() const override;
  [[nodiscard]] std::string_view fix_of_cuts() const override;
  [[nodiscard]] std::string fix_of_losses() const override {
    return std::string(counters_.fix_of_full_rings());
  }
  void describe(Closing& closing) override;
  [[nodiscard]] std::string problem() const override;

 private:
  /// Before those of CPU time (wait_writer.h), as is the next.
  static constexpr std::uint64_t kWakerId = kCpuId - 2;

  /// The parts that exist once the output of the stream is known.
  struct Recording {
    Recording(Output& out, BpfEngine& engine);

    HeldOutput out;  ///< holds back until switches are recorded and the command has started
    stream::StreamWriter writer;
    recording::RecordedStream stream;
    recording::Drain drain;
    OrderedWaits waits;
    unwind::CodeTables tables;
    PassedSwitches passed;
  };
  void pause();
  void write_head();
  void add_targets();
  void read_ring();
  void take_in();
  bool precede(const stream::Record& record);
  void take(const stream::Record& record);
  void walk_passed(std::uint64_t until_ns);
  void hold_parts(const LateWait& wait, const unwind::Sum& sum);
  void hold_sample(const unwind::SampleRecord& taken, Stack stack);
  /// A sum of waits is drawn as one, up to its end: with samples of CPU time it must be short.
  [[nodiscard]] std::uint64_t read_every_ns() const noexcept {
    constexpr std::uint64_t kUsualNs = 1'000'000'000, kWithCpuNs = 100'000'000;
    return samplers_ ? kWithCpuNs : kUsualNs;
  }
  void read_sums();
  // Waits that cross the start or the end: crossing_waits.cpp.
  void hold_earlier_waits();
  void add_last_silence();
  void hold_unfinished(const unwind::Outstanding& wait, std::uint64_t length_ns,
                       std::uint64_t event);
  void add_unfinished();
  void publish();
  Stack stack_of_wait(const unwind::SumKey& key, std::uint64_t since_ns, std::uint64_t end_ns);
  std::vector<WokenBy> see_wakers(std::uint32_t number, std::uint64_t time_ns, std::uint64_t waits,
                                  const StackReader::Walked& walked = {});
  [[nodiscard]] bool is_wanted(std::uint32_t tid) const {
    return only_threads_.empty() || only_threads_.contains(tid);
  }
  /// Can the perf engine record the same?
  [[nodiscard]] bool has_perf() const {
    return !choice_.with_wakers && !choice_.with_locks && !samplers_;
  }
  /// Is the time divided in which no thread ran?  That of some threads is not known,
  /// and on the whole machine something always runs.
  [[nodiscard]] bool has_elapsed_time() const {
    return samplers_.has_value() && only_threads_.empty() && !target_.is_everything;
  }
  [[nodiscard]] std::optional<std::uint32_t> command() const {
    return target_.is_command ? std::optional<std::uint32_t>(target_.processes.front())
                              : std::nullopt;
  }
  /// Keeps the binaries of a process.
  void see(std::uint32_t pid);
  [[nodiscard]] perf_event_attr attr_of_waits() const {
    return wait_attr(unwound_, choice_.with_locks, samplers_.has_value());
  }
  [[nodiscard]] std::vector<std::uint64_t> ids() const;
  [[nodiscard]] std::unordered_set<std::uint64_t> marks() const {
    const auto ids = recording::mark_ids(counters_.events());
    return {ids.begin(), ids.end()};
  }
  [[nodiscard]] std::uint64_t first_id() const { return ids().front(); }

  WaitChoice choice_;
  recording::Request request_;
  recording::Target target_;   ///< whole processes in place of threads
  recording::Target sources_;  ///< the same, and everything that may wake them
  OwnProcesses own_;           ///< of sources_: the counters are those of CPUs
  std::unordered_set<std::uint32_t> only_threads_;
  Budget& budget_;
  std::uint32_t budget_percent_;  ///< for samples of CPU time
  Object object_;
  recording::Counters counters_;
  std::optional<recording::Counters> samplers_;  ///< of CPU time, if it is wanted
  std::vector<int> fds_;
  perf_event_attr layout_;   ///< of the kernel's records, and of forwarded switches
  perf_event_attr unwound_;  ///< of samples after their stacks are walked
  ScriptStacks scripts_;
  recording::Synthesizer command_lines_;  ///< writes those that the kernel sends
  StackReader stacks_;
  SumIncreases increases_;
  std::uint64_t next_reading_ns_ = 0, began_ns_ = 0, stopped_ns_ = 0, ended_ns_ = 0,
                pass_began_ns_ = 0;
  std::uint64_t renewed_ns_ = 0;                 ///< when the kernel's tables were last renewed
  std::vector<unwind::Outstanding> unfinished_;  ///< waits of the moment of stop()
  std::uint64_t silent_ns_ = 0;                  ///< since when no thread ran at that moment
  std::unordered_set<std::uint32_t> threads_seen_;
  std::vector<pid_t> unreadable_;
  std::uint64_t lost_changes_ = 0;      ///< records of processes and mappings
  std::uint64_t silent_threads_ = 0;    ///< target threads of which nothing was recorded
  std::optional<Recording> recording_;  ///< uses the members above
};

}  // namespace pe::waits
