// Samples of an engine of ours, in its ring: the engines signal and ptrace.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pe-record/options.h"
#include "record/engines/sample_source.h"
#include "record/session.h"
#include "record/stream/drain.h"
#include "record/stream/recorded_stream.h"
#include "record/stream/unsampled.h"
#include "stream/stream_writer.h"

namespace pe::recorder {

/// The members are in the order in which they are set up.
class EngineSource final : public record::Source {
 public:
  /// Starts the session's command and opens its output.  Throws Error; Refused before it has
  /// touched the output.
  EngineSource(const Options& options, record::Session& session);

  void start() override;
  [[nodiscard]] std::vector<int> fds() const override;
  std::optional<std::uint64_t> pass() override;
  [[nodiscard]] std::string progress() const override;
  void stop() override;
  std::string finish(record::Ended ended) override;
  [[nodiscard]] std::optional<std::string> why_empty() override;

 private:
  void open_signal();
  void open_ptrace();

  record::Request request_;
  record::Session& session_;
  std::unique_ptr<record::SampleSource> engine_;
  std::optional<record::TargetTime> time_;
  std::optional<stream::StreamWriter> writer_;
  std::optional<record::RecordedStream> stream_;
  std::optional<record::Drain> drain_;
  std::vector<pid_t> unreadable_;
  std::uint64_t last_pass_ns_ = 0;
};

}  // namespace pe::recorder
