// An engine that samples without the kernel's counters.
//
// It has its own thread, which puts samples into a queue.  The recorder reads them from the queue
// and writes them (taken_stream.h).  Such engines differ only in how they get a thread's registers
// and stack.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "record/stream/taken_queue.h"
#include "record/stream/unsampled.h"

namespace pe::record {

class SampleSource {
 public:
  SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;
  SampleSource(SampleSource&&) = delete;
  SampleSource& operator=(SampleSource&&) = delete;
  /// Releases the target, which then runs, or stays stopped, as if it had never been recorded.
  virtual ~SampleSource() = default;

  [[nodiscard]] virtual TakenQueue& queue() noexcept = 0;
  /// Starts sampling.  Thread events may be queued earlier.
  virtual void start() = 0;
  /// Stops sampling and releases the target.  All samples so far are in the queue.
  virtual void stop() = 0;
  /// Returns news that the user should know now; usually nothing.
  virtual std::optional<std::string> news() = 0;
  /// After stop(): returns the number of samples that were recorded but never reached the queue.
  [[nodiscard]] virtual std::uint64_t lost() const = 0;
  /// Returns the time that the samples represent so far; nullopt if they do not cover all CPU time
  /// of a command.
  [[nodiscard]] virtual std::optional<SampledTime> sampled_time() const { return std::nullopt; }
  /// After stop(): describes the cost to the target, for the closing line.
  [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace pe::record
