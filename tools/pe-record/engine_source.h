// Samples of an engine of ours, in its ring: the engines signal and ptrace.
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pe-record/options.h"
#include "pe-record/ring_source.h"
#include "recording/sample_source.h"

namespace pe::recorder {

class EngineSource final : public RingSource {
 public:
  /// Starts the session's command and opens its output.  Throws Error; Refused before it has
  /// touched the output.
  EngineSource(const Options& options, recording::Session& session);

  void start() override;
  [[nodiscard]] std::vector<int> fds() const override;
  std::optional<std::uint64_t> pass() override;
  void stop() override;
  Closing finish(recording::Ended ended) override;

 private:
  void open_signal();
  void open_ptrace();

  std::unique_ptr<recording::SampleSource> engine_;
  std::uint64_t last_pass_ns_ = 0;
};

}  // namespace pe::recorder
