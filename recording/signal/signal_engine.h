// Lets a command sample itself.  A library in it (inprocess/sampler/core) copies registers and
// stack into memory that we read, whenever a timer's signal arrives.
//
// The target is never stopped, and we need no privileges over it.  But the library must be loaded
// (LD_PRELOAD), and the kernel checks timers of CPU time only at its ticks.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "recording/request.h"
#include "recording/sample_source.h"
#include "recording/signal/collector.h"

namespace pe::recording {

/// Explains why there were `got` samples per second of CPU time instead of `hz`.  The kernel's
/// clock ticks `ticks` times a second.
std::string why_fewer_samples(double got, std::uint64_t hz, std::uint64_t ticks);
/// Returns the advice for that.
std::string fix_of_fewer_samples(double got, std::uint64_t hz, std::uint64_t ticks);

class SignalEngine final : public SampleSource {
 public:
  /// Starts to listen for the command and the processes that it starts.  Throws Error,
  /// Refused if the library cannot be loaded into the command, or CommandError if there is no
  /// such command.
  SignalEngine(const Request& request, const std::vector<std::string>& command, Budget& budget);
  SignalEngine(const SignalEngine&) = delete;
  SignalEngine& operator=(const SignalEngine&) = delete;
  SignalEngine(SignalEngine&&) = delete;
  SignalEngine& operator=(SignalEngine&&) = delete;
  ~SignalEngine() override;

  /// Returns the variables that the command's environment must contain ("NAME=VALUE").
  [[nodiscard]] std::vector<std::string> environment() const;
  /// Returns the maximum size of a stack's copy.
  [[nodiscard]] std::uint32_t stack_bytes() const noexcept { return settings_.stack_bytes; }

  void start() override;
  void stop() override;
  std::optional<std::string> news() override { return std::nullopt; }
  [[nodiscard]] std::uint64_t lost() const override;
  [[nodiscard]] std::optional<SampledTime> sampled_time() const override;
  void describe(Closing& closing) const override;

 private:
  void run();
  void look();
  void describe_rate(Closing& closing) const;
  void describe_choice(Closing& closing) const;
  void describe_missed(Closing& closing) const;

  inprocess::Settings settings_;
  bool wants_all_threads_, rate_was_given_;
  std::string library_;
  std::uint64_t last_look_ns_ = 0;  ///< when the last pass started
  Collector collector_;
  Closing scripts_;  ///< what interpreters' stacks contribute; valid after stop()
  Fd stops_;
  std::thread thread_;
};

}  // namespace pe::recording
