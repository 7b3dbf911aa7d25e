// Waits from the kernel's counters.  There is a sample with registers and stack each time that a
// thread stops running (context-switches, or the tracepoint sched:sched_switch if states are
// wanted).  Records report when the thread stopped running and when it ran again.
//
// The sample comes before the record of the same switch (kernel/sched/core.c, __schedule();
// perf_event_task_sched_out()).
// SPDX-License-Identifier: MIT
#pragma once

#include <unordered_set>

#include "recording/counters/counters.h"
#include "recording/stream/drain.h"
#include "recording/stream/recorded_stream.h"
#include "recording/waits/engine.h"
#include "recording/waits/wait_writer.h"
#include "stream/records/sample.h"
#include "stream/records/tracepoint.h"

namespace pe::waits {

class PerfEngine final : public Engine {
 public:
  /// `may_use_bpf`: the other engine works here, for this target and user.
  PerfEngine(const Options& options, const recording::Target& target, Budget& budget,
             bool may_use_bpf);

  [[nodiscard]] const std::vector<std::string>& notes() const override { return counters_.notes(); }
  std::uint64_t begin(Output& out) override;
  void write_running_state() override;
  [[nodiscard]] const std::vector<int>& fds() const override { return counters_.ring_fds(); }
  std::optional<std::uint64_t> pass() override;
  void stop() override;
  void finish() override;
  [[nodiscard]] const WaitCounts& counts() const override { return tracker_.counts(); }
  [[nodiscard]] std::size_t threads() const override { return tracker_.threads(); }
  [[nodiscard]] std::uint64_t lost() const override;
  [[nodiscard]] unwind::StackCounts stacks() const override;
  [[nodiscard]] std::string_view fix_of_cuts() const override;
  [[nodiscard]] std::string fix_of_losses() const override;
  void describe(Closing& closing) override;
  [[nodiscard]] std::string problem() const override;

 private:
  /// The parts that exist once the output of the stream is known.
  struct Recording {
    Recording(Output& out, PerfEngine& engine);

    stream::StreamWriter writer;
    recording::RecordedStream stream;
    recording::Drain drain;
    WaitWriter waits;
  };

  void write_head();
  void take(const stream::Record& record);
  void take_sample(const stream::Record& record);
  void take_loss(const stream::Record& record);
  void take_change(const stream::Record& record);
  [[nodiscard]] std::uint64_t first_id() const;
  [[nodiscard]] std::unordered_set<std::uint64_t> marks() const;
  [[nodiscard]] std::vector<std::uint64_t> ids_of_waits() const;
  [[nodiscard]] char state_of(const stream::Sample& sample) const;

  bool may_use_bpf_;
  recording::Request request_;
  recording::Target target_;
  Budget& budget_;
  recording::Counters counters_;
  perf_event_attr layout_;               ///< of the kernel's records
  perf_event_attr unwound_;              ///< of samples after their stacks are walked
  stream::TracepointField state_field_;  ///< empty: states are not recorded
  WaitTracker tracker_;
  std::optional<Recording> recording_;
  std::vector<pid_t> unreadable_;
  std::uint64_t stopped_ns_ = 0;
  stream::LostSamples lost_samples_, lost_changes_;  ///< the latter: of switches and processes
  std::uint64_t silent_threads_ = 0;  ///< target threads of which nothing was recorded
};

}  // namespace pe::waits
