// A recording by the kernel's counters (perf_event_open(2)): the engines perf and bpf.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "cli/child.h"
#include "cli/run.h"
#include "cli/stop_signals.h"
#include "pe-record/options.h"
#include "pe-record/output.h"
#include "recording/bpf_engine.h"
#include "recording/counters.h"
#include "recording/drain.h"
#include "recording/ending.h"
#include "recording/own_cost.h"
#include "recording/recorded_stream.h"
#include "recording/target_activity.h"
#include "recording/watch.h"

namespace pe::record {

/// What takes part, in the order in which it is set up.
class KernelRecording {
 public:
  /// Throws Error; PerfRefused before anything has been begun.
  KernelRecording(const Options& options, cli::Io& io);

  /// Until something ends it; returns the status.
  int run();

 private:
  recording::Ended watch();
  void finish();
  int end(recording::Ended ended);
  [[nodiscard]] cli::Child* child() { return child_ ? &*child_ : nullptr; }

  recording::OwnCost cost_;
  const Options& options_;
  cli::Io& io_;
  cli::StopSignals signals_;
  recording::Ending ending_;
  std::unique_ptr<recording::BpfEngine> engine_;
  std::optional<cli::Child> child_;
  recording::Target target_;
  std::optional<recording::TargetWatch> watched_;
  std::optional<recording::TargetActivity> activity_;
  std::optional<recording::Counters> counters_;
  std::optional<Output> output_;
  std::optional<recording::TargetTime> time_;
  std::optional<recording::RecordedStream> stream_;
  std::optional<recording::Drain> drain_;
  std::vector<pid_t> unreadable_;
  std::uint64_t lost_ = 0;  ///< once it is over
};

}  // namespace pe::record
