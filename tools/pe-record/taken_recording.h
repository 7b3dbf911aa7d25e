// A recording by an engine that takes samples without the kernel's counters.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/child.h"
#include "base/cli/run.h"
#include "base/cli/stop_signals.h"
#include "pe-record/options.h"
#include "pe-record/output.h"
#include "record/ending.h"
#include "record/engines/sample_source.h"
#include "record/own_cost.h"
#include "record/stream/recorded_stream.h"
#include "record/stream/taken_stream.h"
#include "record/target_activity.h"
#include "record/watch.h"

namespace pe::recorder {

/// What takes part, in the order in which it is set up.
class TakenRecording {
 public:
  /// Throws Error; SourceRefused if the target may not be recorded so, before anything has been
  /// begun.
  TakenRecording(const Options& options, Io& io);

  /// Until something ends it; returns the status.
  int run();

 private:
  void open_signal();
  void open_ptrace();
  void start_child(const std::vector<std::string>& environment);
  record::Ended watch();
  void take();
  void finish();
  int end(record::Ended ended);
  [[nodiscard]] Child* child() { return child_ ? &*child_ : nullptr; }

  record::OwnCost cost_;
  const Options& options_;
  record::Request request_;
  Io& io_;
  StopSignals signals_;
  record::Ending ending_;
  std::optional<Child> child_;
  record::Target target_;
  std::optional<record::TargetWatch> watched_;
  std::optional<record::TargetActivity> activity_;
  std::unique_ptr<record::SampleSource> source_;
  std::optional<record::TargetTime> time_;
  std::vector<std::string> notes_;
  record::OpenedEvent event_;
  std::optional<StreamOutput> output_;
  std::optional<record::RecordedStream> stream_;
  std::optional<record::TakenStream> taken_;
  std::vector<pid_t> unreadable_;
  std::uint64_t last_pass_ns_ = 0;
};

}  // namespace pe::recorder
