// Samples in rings, which a Drain writes into the session's output: the common part of the sources
// of the kernel's counters and of our own engines.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pe-record/engines.h"
#include "pe-record/options.h"
#include "recording/bpf/bpf_engine.h"
#include "recording/counters/counters.h"
#include "recording/session.h"
#include "recording/stream/drain.h"
#include "recording/stream/recorded_stream.h"
#include "recording/stream/unsampled.h"
#include "stream/stream_writer.h"

namespace pe::recorder {

/// The members are in the order in which they are set up.
class RingSource : public recording::Source {
 public:
  [[nodiscard]] std::string progress() const final;
  [[nodiscard]] std::optional<std::string> why_empty() final;

 protected:
  RingSource(const Options& options, recording::Session& session)
      : request_(options.request), session_(session), advice_(options) {}

  /// Opens the output, prints `notes`, and sets up the stream.  All records have the layout of
  /// `event`.  Samples come from bpf_ if it is not null.
  void open_stream(const recording::OpenedEvent& event, const std::vector<std::string>& notes,
                   recording::StreamParts parts = {});
  /// Examines the session's command, and its interpreters, before it starts: processes with short
  /// lives must not wait for that.
  void expect_command();
  /// Waits for copies of binaries.  Returns the closing lines, without the source's own.
  Closing close_stream(const recording::Passed& passed);

  recording::Request request_;
  recording::Session& session_;
  std::unique_ptr<recording::BpfEngine> bpf_;
  std::optional<stream::StreamWriter> writer_;
  std::optional<recording::TargetTime> time_;
  std::optional<recording::RecordedStream> stream_;
  std::optional<recording::Drain> drain_;
  std::vector<pid_t> unreadable_;  ///< the result of write_running()
  std::string program_;            ///< see recording::Wanted
  std::string_view fix_of_full_rings_ = "raise --mmap-pages";

 private:
  [[nodiscard]] std::string fix_of_losses() const;

  EngineAdvice advice_;
  std::string event_;
  perf_event_attr attr_{};
  std::uint64_t lost_ = 0;  ///< known once the recording is over
};

}  // namespace pe::recorder
