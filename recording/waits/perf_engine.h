// Waits from the kernel's counters.  There is a sample with registers and stack each time that a
// thread stops running (context-switches, or the tracepoint sched:sched_switch if states are
// wanted).  Records report when the thread stopped running and when it ran again.
//
// The sample comes before the record of the same switch (kernel/sched/core.c, __schedule();
// perf_event_task_sched_out()).
//
// With samples of CPU time, the records of switches also show how many threads run, and when none
// does.  Of kinds of waits the kernel's functions in call chains tell (wait_kinds.h), and how long
// a thread waits for a CPU, the tracepoint of its waking, where we may read it.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <unordered_set>

#include "recording/counters/counters.h"
#include "recording/stream/drain.h"
#include "recording/stream/recorded_stream.h"
#include "recording/waits/engine.h"
#include "recording/waits/kernel_ids.h"
#include "recording/waits/ordered_waits.h"
#include "recording/waits/running_threads.h"
#include "recording/waits/wait_kinds.h"
#include "recording/waits/wait_writer.h"
#include "stream/records/sample.h"
#include "stream/records/tracepoint.h"

namespace pe::waits {

class PerfEngine final : public Engine {
 public:
  /// `may_use_bpf`: the other engine works here, for this target and user.  Throws Error; Refused,
  /// if CPU time is wanted too, and the kernel gives no stacks of waits.
  PerfEngine(const Options& options, const recording::Target& target, Budget& budget,
             bool may_use_bpf);

  [[nodiscard]] const std::vector<std::string>& notes() const override { return counters_.notes(); }
  std::uint64_t begin(Output& out) override;
  void write_running_state() override;
  [[nodiscard]] const std::vector<int>& fds() const override { return counters_.ring_fds(); }
  std::optional<std::uint64_t> pass() override;
  void stop() override;
  void finish() override;
  [[nodiscard]] const WaitCounts& counts() const override { return counts_; }
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
    OrderedWaits waits;
  };

  [[nodiscard]] std::string_view fix_of_wakeups() const;
  void write_head();
  void take(const stream::Record& record);
  void take_sample(const stream::Record& record);
  void hold(std::uint64_t time_ns, const stream::Record& record);
  // The times of threads: perf_times.cpp.
  bool precede(const stream::Record& record);
  void take_wakeup(const stream::Record& record);
  void take_switch(const stream::SwitchRecord& change);
  void hold(const Wait& wait);
  void hold_cpu_time(const stream::Sample& sample, std::uint16_t misc);
  void hold_rest(const RunningThreads::Rest& rest, std::uint64_t end_ns);
  void hold_lost(std::uint32_t pid, std::uint32_t tid, std::uint64_t end_ns);
  void trim(Stack& stack);
  void find_waiting();
  void finish_times();
  void count();
  void take_loss(const stream::Record& record);
  void take_change(const stream::Record& record);
  [[nodiscard]] std::uint64_t first_id() const;
  [[nodiscard]] std::unordered_set<std::uint64_t> marks() const;
  /// Is the time divided in which no thread ran?  As of BpfEngine.
  [[nodiscard]] bool has_elapsed_time() const {
    return with_cpu_ && target_.threads.empty() && !target_.is_everything;
  }
  [[nodiscard]] perf_event_attr attr_of_waits() const {
    return wait_attr(unwound_, false, with_cpu_);
  }
  [[nodiscard]] char state_of(const stream::Sample& sample) const;
  void learn_number(const stream::Sample& sample);

  bool may_use_bpf_, with_cpu_, user_only_;
  recording::Request request_;
  recording::Target target_;
  Budget& budget_;
  recording::Counters counters_;
  perf_event_attr layout_;               ///< of the kernel's records
  perf_event_attr unwound_;              ///< of samples after their stacks are walked
  stream::TracepointField state_field_;  ///< empty: states are not recorded
  stream::TracepointField switched_field_ = {};
  WaitTracker tracker_;
  RunningThreads running_;
  RunningThreads::Silence silence_;          ///< that the thread has ended which now comes to a CPU
  std::optional<LateWait> last_unfinished_;  ///< the wait that began last
  WaitKinds kinds_;
  std::string without_kinds_;  ///< why they are not known
  WaitFacts facts_;            ///< of the switch whose stack is walked
  std::unordered_set<std::uint64_t> cpu_ids_, wakeup_ids_;
  perf_event_attr wakeup_layout_ = {};
  stream::TracepointField wakee_field_ = {};
  KernelIds numbers_;
  WaitCounts counts_;
  std::string record_;  ///< with its id replaced
  std::optional<Recording> recording_;
  std::vector<pid_t> unreadable_;
  std::uint64_t began_ns_ = 0, now_ns_ = 0, stopped_ns_ = 0;
  stream::LostSamples lost_samples_, lost_changes_;  ///< the latter: of switches and processes
  std::uint64_t silent_threads_ = 0;  ///< target threads of which nothing was recorded
};

}  // namespace pe::waits
