// Samples of the kernel's counters (perf_event_open(2)): the engines perf and bpf.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pe-record/options.h"
#include "record/engines/bpf_engine.h"
#include "record/engines/counters.h"
#include "record/session.h"
#include "record/stream/drain.h"
#include "record/stream/recorded_stream.h"
#include "record/stream/unsampled.h"
#include "stream/stream_writer.h"

namespace pe::recorder {

/// The members are in the order in which they are set up.
class CounterSource final : public record::Source {
 public:
  /// Starts the session's command and opens its output.  Throws Error; Refused before it has
  /// touched the output.
  CounterSource(const Options& options, record::Session& session);

  void start() override;
  [[nodiscard]] std::vector<int> fds() const override;
  std::optional<std::uint64_t> pass() override;
  [[nodiscard]] std::string progress() const override;
  void stop() override;
  std::string finish(record::Ended ended) override;
  [[nodiscard]] std::optional<std::string> why_empty() override;

 private:
  /// Samples start: the duration, the target's CPU time and our own count from `now_ns`.
  void start_clock(std::uint64_t now_ns);
  [[nodiscard]] std::string describe_unsampled(const record::Passed& passed) const;

  const Options& options_;
  record::Session& session_;
  std::unique_ptr<record::BpfEngine> engine_;
  std::optional<record::Counters> counters_;
  std::optional<stream::StreamWriter> writer_;
  std::optional<record::TargetTime> time_;
  std::optional<record::RecordedStream> stream_;
  std::optional<record::Drain> drain_;
  std::vector<pid_t> unreadable_;
  std::uint64_t lost_ = 0;  ///< known once the recording is over
};

}  // namespace pe::recorder
