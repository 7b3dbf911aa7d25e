// An engine that takes samples outside of the kernel's counters.
//
// It has a thread of its own and hands over what it takes through a queue; who records takes that
// and writes it (taken_stream.h).  How a thread is made to show its registers and stack is all that
// such engines differ by.
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
  /// The target is left alone from here on, and runs, or is stopped, as if it had always been.
  virtual ~SampleSource() = default;

  [[nodiscard]] virtual TakenQueue& queue() noexcept = 0;
  /// Samples begin; whatever becomes of threads is told from before this on.
  virtual void start() = 0;
  /// The target is left alone; what has been taken by then is in the queue.
  virtual void stop() = 0;
  /// Something the user should know now; nothing most of the time.
  virtual std::optional<std::string> news() = 0;
  /// After stop(): samples that were taken, and are not in the queue nor have been.
  [[nodiscard]] virtual std::uint64_t lost() const = 0;
  /// What its samples represent by now; nullopt if that is not all CPU time of a command.
  [[nodiscard]] virtual std::optional<SampledTime> sampled_time() const { return std::nullopt; }
  /// After stop(), for the closing line: what it has cost the target.
  [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace pe::record
