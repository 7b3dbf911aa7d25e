// Samples that a command takes of itself: a library in it (inprocess/sampler/core) copies registers
// and stack when a timer's signal comes, into memory that we read.
//
// The target is never stopped, nor need we have any right over it; but the library has to be loaded
// (LD_PRELOAD), and the kernel looks at timers of CPU time at its ticks only.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "inprocess/sampler/collector.h"
#include "record/engines/sample_source.h"
#include "record/request.h"
#include "record/stream/held_taken.h"

namespace pe::record {

/// Why no command can sample itself here; empty if it can.
std::string why_no_signals();

/// Why there were `got` samples a second of CPU time instead of `hz`; the kernel's clock ticks
/// `ticks` times.
std::string why_fewer_samples(double got, std::uint64_t hz, std::uint64_t ticks);

class SignalEngine final : public SampleSource, private inprocess::Events {
 public:
  /// Begins to listen for the command and what it starts.  Throws Error; Refused where the
  /// library cannot be loaded into the command, CommandError where there is no such command.
  SignalEngine(const Request& request, const std::vector<std::string>& command);
  SignalEngine(const SignalEngine&) = delete;
  SignalEngine& operator=(const SignalEngine&) = delete;
  SignalEngine(SignalEngine&&) = delete;
  SignalEngine& operator=(SignalEngine&&) = delete;
  ~SignalEngine() override;

  /// What the command has to find in its environment ("NAME=VALUE").
  [[nodiscard]] std::vector<std::string> environment() const;
  /// The most that is copied of a stack.
  [[nodiscard]] std::uint32_t stack_bytes() const noexcept { return settings_.stack_bytes; }

  TakenQueue& queue() noexcept override { return queue_; }
  void start() override;
  void stop() override;
  std::optional<std::string> news() override { return std::nullopt; }
  [[nodiscard]] std::uint64_t lost() const override;
  [[nodiscard]] std::optional<SampledTime> sampled_time() const override;
  [[nodiscard]] std::string describe() const override;

 private:
  struct Process {
    std::uint64_t period_ns = 0;
    std::uint64_t last_ns = 0;  ///< of what is known of it
    std::uint64_t ended_ns = 0;
    bool has_samples = false;
    std::set<pid_t> threads = {};  ///< beside the first
  };

  void on_process(const inprocess::ProcessBegan& process) override;
  void on_thread(const inprocess::ThreadOf& thread, std::uint64_t time_ns) override;
  void on_sample(const inprocess::CollectedSample& sample) override;
  void on_thread_end(const inprocess::ThreadOf& thread) override;
  void on_process_end(pid_t pid) override;

  void run();
  void look();
  void tell_ends();
  [[nodiscard]] std::string describe_rate() const;
  [[nodiscard]] std::string describe_choice() const;
  [[nodiscard]] std::string describe_missed() const;

  inprocess::Settings settings_;
  bool wants_all_threads_;
  std::string library_;
  TakenQueue queue_;
  HeldTaken held_;
  std::unordered_map<pid_t, Process> processes_;
  std::vector<pid_t> ended_;             ///< in this look, unless another program has begun in them
  std::uint64_t sampled_ns_ = 0;         ///< that the samples represent, without lost ones
  std::uint64_t sampled_processes_ = 0;  ///< of which there is a sample
  inprocess::Collector collector_;
  Fd stops_;
  std::thread thread_;
};

}  // namespace pe::record
