// Samples threads by stopping them, where perf_event_open(2) is forbidden (tracer.h).
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "recording/child.h"
#include "recording/ptrace/tracer.h"
#include "recording/request.h"
#include "recording/sample_source.h"

namespace pe::recording {

class PtraceEngine final : public SampleSource {
 public:
  /// Starts to trace the target, and a command before its exec.  Blocks SIGCHLD in the calling
  /// thread for good, so it must be created before other threads.  Reading of interpreters draws on
  /// `budget`, which must outlive this.  Throws Error, or Refused if tracing is not allowed.
  PtraceEngine(Request request, const Target& target, Budget& budget);
  PtraceEngine(const PtraceEngine&) = delete;
  PtraceEngine& operator=(const PtraceEngine&) = delete;
  PtraceEngine(PtraceEngine&&) = delete;
  PtraceEngine& operator=(PtraceEngine&&) = delete;
  ~PtraceEngine() override;

  /// Returns the state from which the command's Child learns how the command ends.
  [[nodiscard]] std::shared_ptr<const WaitedElsewhere> child() const { return orders_.child; }

  void start() override;
  void stop() override;
  std::optional<std::string> news() override;
  /// Valid after stop().
  [[nodiscard]] std::optional<SampledTime> sampled_time() const override;
  void describe(Closing& closing) const override;

 private:
  void poke();

  Request request_;
  TracerOrders orders_;
  std::uint64_t left_alone_ = 0;  ///< valid after stop()
  std::uint64_t sampled_ns_ = 0;  ///< valid after stop()
  StopTimes stop_times_{0};       ///< valid after stop()
  Closing scripts_;               ///< what interpreters' stacks contribute; valid after stop()
  bool has_told_ = false;
  std::uint64_t fast_ns_ = 0;  ///< when the rate was last as requested
  std::thread thread_;
};

}  // namespace pe::recording
