// A recording by an engine that takes samples without the kernel's counters.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/child.h"
#include "cli/run.h"
#include "cli/stop_signals.h"
#include "pe-record/options.h"
#include "pe-record/output.h"
#include "recording/ending.h"
#include "recording/own_cost.h"
#include "recording/recorded_stream.h"
#include "recording/sample_source.h"
#include "recording/taken_stream.h"
#include "recording/target_activity.h"
#include "recording/watch.h"

namespace pe::record {

/// What takes part, in the order in which it is set up.
class TakenRecording {
 public:
  /// Throws Error; SourceRefused if the target may not be recorded so, before anything has been
  /// begun.
  TakenRecording(const Options& options, cli::Io& io);

  /// Until something ends it; returns the status.
  int run();

 private:
  void open_signal();
  void open_ptrace();
  void start_child(const std::vector<std::string>& environment);
  recording::Ended watch();
  void take();
  void finish();
  int end(recording::Ended ended);
  [[nodiscard]] cli::Child* child() { return child_ ? &*child_ : nullptr; }

  recording::OwnCost cost_;
  const Options& options_;
  recording::Request request_;
  cli::Io& io_;
  cli::StopSignals signals_;
  recording::Ending ending_;
  std::optional<cli::Child> child_;
  recording::Target target_;
  std::optional<recording::TargetWatch> watched_;
  std::optional<recording::TargetActivity> activity_;
  std::unique_ptr<recording::SampleSource> source_;
  std::optional<recording::TargetTime> time_;
  std::vector<std::string> notes_;
  recording::OpenedEvent event_;
  std::optional<Output> output_;
  std::optional<recording::RecordedStream> stream_;
  std::optional<recording::TakenStream> taken_;
  std::vector<pid_t> unreadable_;
  std::uint64_t last_pass_ns_ = 0;
};

}  // namespace pe::record
