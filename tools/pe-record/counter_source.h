// Samples of the kernel's counters (perf_event_open(2)): the engines perf and bpf.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pe-record/options.h"
#include "pe-record/ring_source.h"
#include "recording/counters/counters.h"

namespace pe::recorder {

class CounterSource final : public RingSource {
 public:
  /// Starts the session's command and opens its output.  Throws Error; Refused before it has
  /// touched the output.
  CounterSource(const Options& options, recording::Session& session);

  void start() override;
  [[nodiscard]] std::vector<int> fds() const override;
  std::optional<std::uint64_t> pass() override;
  void stop() override;
  Closing finish(recording::Ended ended) override;

 private:
  /// Samples start: the duration, the target's CPU time and our own count from `now_ns`.
  void start_clock(std::uint64_t now_ns);
  [[nodiscard]] std::optional<recording::Weigher> weigher(const perf_event_attr& attr) const;
  void check_hits();
  void add_weights(Closing& closing) const;
  void add_unsampled(Closing& closing, const recording::Passed& passed) const;

  std::optional<recording::Counters> counters_;
  std::uint64_t started_ns_ = 0, stopped_ns_ = 0;
  std::uint64_t hits_since_ns_ = 0, hits_before_ = 0;  ///< when check_hits() last counted, and what
  bool is_over_ = false;                               ///< there were too many hits
};

}  // namespace pe::recorder
