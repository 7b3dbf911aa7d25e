// Samples by stopping threads, where perf_event_open(2) is forbidden (tracer.h).
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/cli/child.h"
#include "record/engines/sample_source.h"
#include "record/engines/tracer.h"
#include "record/request.h"

namespace pe::record {

class PtraceEngine final : public SampleSource {
 public:
  /// Traces the target from here on, a command from before its exec.  Blocks SIGCHLD in the calling
  /// thread, for good: to be made before other threads are.  Throws Error, Refused where
  /// that is not allowed.
  PtraceEngine(Request request, const Target& target);
  PtraceEngine(const PtraceEngine&) = delete;
  PtraceEngine& operator=(const PtraceEngine&) = delete;
  PtraceEngine(PtraceEngine&&) = delete;
  PtraceEngine& operator=(PtraceEngine&&) = delete;
  ~PtraceEngine() override;

  /// For the command, to learn from it how that ends.
  [[nodiscard]] std::shared_ptr<const WaitedElsewhere> child() const { return orders_.child; }

  TakenQueue& queue() noexcept override { return queue_; }
  void start() override;
  void stop() override;
  std::optional<std::string> news() override;
  [[nodiscard]] std::uint64_t lost() const override { return queue_.lost(); }
  [[nodiscard]] std::string describe() const override;

 private:
  void poke();

  Request request_;
  TakenQueue queue_;
  TracerOrders orders_;
  std::uint64_t left_alone_ = 0;  ///< once stopped
  StopTimes stop_times_;          ///< once stopped
  bool has_told_ = false;
  std::uint64_t fast_ns_ = 0;  ///< when the rate was last as wanted
  std::thread thread_;
};

}  // namespace pe::record
