// An engine that samples without the kernel's counters.
//
// It has its own thread, which writes finished records into a ring (engine_records.h).  The
// recorder reads that ring like the kernel's (drain.h).  Such engines differ only in how they get a
// thread's registers and stack.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/closing.h"
#include "recording/stream/engine_records.h"
#include "recording/stream/unsampled.h"

namespace pe::recording {

class SampleSource {
 public:
  /// Throws Error, as engine_event() does.
  explicit SampleSource(const Request& request) : event_(engine_event(request, notes_)) {}
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;
  SampleSource(SampleSource&&) = delete;
  SampleSource& operator=(SampleSource&&) = delete;
  /// Releases the target, which then runs, or stays stopped, as if it had never been recorded.
  virtual ~SampleSource() = default;

  /// The event of the samples.
  [[nodiscard]] const OpenedEvent& event() const noexcept { return event_; }
  /// Lines for the user: how the event differs from the request.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }
  [[nodiscard]] EngineRing& ring() noexcept { return ring_; }
  /// Starts sampling.  Records of threads may be written earlier.
  virtual void start() = 0;
  /// Stops sampling and releases the target.  All samples so far are in the ring.
  virtual void stop() = 0;
  /// Returns news that the user should know now; usually nothing.
  virtual std::optional<std::string> news() = 0;
  /// After stop(): returns the number of lost samples, including those that found no room in the
  /// ring.
  [[nodiscard]] virtual std::uint64_t lost() const { return ring_.lost(); }
  /// Returns the time that the samples represent so far; nullopt if they do not cover all CPU time
  /// of a command.
  [[nodiscard]] virtual std::optional<SampledTime> sampled_time() const { return std::nullopt; }
  /// After stop(): adds the cost to the target, and what was not sampled.
  virtual void describe(Closing& closing) const = 0;

 protected:
  /// For the engine's thread.
  [[nodiscard]] EngineRecords& records() noexcept { return records_; }

 private:
  std::vector<std::string> notes_;
  OpenedEvent event_;
  EngineRing ring_;
  EngineRecords records_{ring_, event_};
};

}  // namespace pe::recording
