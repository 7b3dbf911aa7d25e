// A recording by the kernel's counters (perf_event_open(2)): the engines perf and bpf.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/cli/child.h"
#include "base/cli/run.h"
#include "base/cli/stop_signals.h"
#include "pe-record/options.h"
#include "pe-record/output.h"
#include "record/ending.h"
#include "record/engines/bpf_engine.h"
#include "record/engines/counters.h"
#include "record/own_cost.h"
#include "record/stream/drain.h"
#include "record/stream/recorded_stream.h"
#include "record/target_activity.h"
#include "record/watch.h"

namespace pe::recorder {

/// What takes part, in the order in which it is set up.
class KernelRecording {
 public:
  /// Throws Error; PerfRefused before anything has been begun.
  KernelRecording(const Options& options, Io& io);

  /// Until something ends it; returns the status.
  int run();

 private:
  /// Samples start: the duration, the target's CPU time and our own count from `now_ns`.
  void begin_time(std::uint64_t now_ns);
  record::Ended watch();
  void finish();
  int end(record::Ended ended);
  [[nodiscard]] Child* child() { return child_ ? &*child_ : nullptr; }

  record::OwnCost cost_;
  const Options& options_;
  Io& io_;
  StopSignals signals_;
  record::Ending ending_;
  std::unique_ptr<record::BpfEngine> engine_;
  std::optional<Child> child_;
  record::Target target_;
  std::optional<record::TargetWatch> watched_;
  std::optional<record::TargetActivity> activity_;
  std::optional<record::Counters> counters_;
  std::optional<StreamOutput> output_;
  std::optional<record::TargetTime> time_;
  std::optional<record::RecordedStream> stream_;
  std::optional<record::Drain> drain_;
  std::vector<pid_t> unreadable_;
  std::uint64_t lost_ = 0;  ///< once it is over
};

}  // namespace pe::recorder
