// Forwards records from the rings to the stream, in the order of time.
//
// Each ring of the kernel is ordered, but all of them together are not.  A pass has seen every
// record that is older than the start of the previous pass.  So it writes these records, sorted,
// and keeps the others for the next pass.  The ring of an engine of ours (engine_records.h) need
// not be ordered: the engine states up to which time its records are complete.
//
// A pass reads all rings before it unwinds anything, and again if unwinding takes long.  Samples
// that will be unwound stay in their ring until the next pass has unwound them, as long as rings
// have much room.  Copying them would cost as much as unwinding.  If there is less room, everything
// is copied, and rings are emptied.  At most the records of two passes wait, and at most
// kMaxHeldBytes.  Further records stay in the rings; the kernel loses and counts those that find no
// room.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_set>
#include <vector>

#include "recording/bpf/bpf_engine.h"
#include "recording/counters/counter.h"
#include "recording/stream/command_lines.h"
#include "recording/stream/file_ids.h"
#include "recording/stream/recorded_stream.h"
#include "stream/ordered_reader.h"
#include "stream/records/sample.h"

namespace pe::recording {

// Decides how soon the rings should be polled again, so that the rest of a deep stack is still
// found in its process.

class DeepPace {
 public:
  explicit DeepPace(const perf_event_attr& attr);

  /// Accepts a sample that has just arrived; the thread's stack occupies `used_bytes` of its copy.
  void see(const stream::Sample& sample, std::size_t used_bytes) noexcept;
  /// Returns the nanoseconds from `now_ns` to the next poll, if the last stacks were nearly as deep
  /// as their copies; nullopt if there is no hurry.
  [[nodiscard]] std::optional<std::uint64_t> wait_ns(std::uint64_t now_ns) const noexcept;

 private:
  std::uint64_t period_ns_;
  std::uint64_t last_ns_ = 0;       ///< of the last sample
  std::uint64_t last_deep_ns_ = 0;  ///< of the last one whose stack nearly filled its copy
};

/// Counts for the closing line.
struct Passed {
  std::uint64_t samples = 0;
  stream::LostSamples lost;     ///< dropped by the kernel because a ring was full
  std::uint64_t marks = 0;      ///< entries and exits of functions
  std::uint64_t throttled = 0;  ///< how often the kernel paused a counter
  std::unordered_set<std::uint32_t> threads, processes;  ///< that have samples
};

class Drain {
 public:
  /// All events share `attr`'s layout.  `stream` must outlive this.  So must `engine`, if it is not
  /// null: samples then come from it, not from the rings.
  Drain(RecordedStream& stream, const perf_event_attr& attr, BpfEngine* engine = nullptr)
      : stream_(stream),
        attr_(attr),
        engine_(engine),
        file_ids_(attr, &stream.budget()),
        pace_(attr) {
    if (engine == nullptr)
      command_lines_.emplace(attr, stream.budget());
  }

  /// From now on a loss (PERF_RECORD_LOST) is written before everything that happened since its
  /// ring was full.  The kernel reports it only when there is room again.
  void report_losses_early() noexcept { reports_losses_early_ = true; }

  /// The caller writes the command lines of programs that are executed, as the engine does.
  void leave_command_lines() noexcept { command_lines_.reset(); }

  /// Makes one pass over the rings.  FINISHED_ROUND separates the records of two passes.  Output is
  /// flushed a few times a second.  The rings already hold all records that are older than
  /// `complete_ns`.
  void pass(std::vector<stream::Ring>& rings, std::uint64_t complete_ns = kNoLimit);
  /// Makes the last pass: writes everything except the end of the round.
  void finish(std::vector<stream::Ring>& rings);

  /// Returns how soon the next pass should start, in nanoseconds, if it is urgent.  It is, if
  /// stacks have just been so deep that the next sample should be seen at once, or if the engine's
  /// tables lag, or if the stacks of a runtime should be read soon.
  [[nodiscard]] std::optional<std::uint64_t> urgency_ns() const;

  /// All older records have been forwarded.
  [[nodiscard]] std::uint64_t written_until_ns() const noexcept { return last_pass_began_ns_; }

  [[nodiscard]] const Passed& passed() const noexcept { return passed_; }

 private:
  static constexpr std::size_t kMaxHeldBytes = 256UL * 1024 * 1024;
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  void pause(std::vector<stream::Ring>& rings);
  void take(std::vector<stream::Ring>& rings);
  void hold(const stream::Record& record, bool may_stay, std::uint64_t& last_ns);
  void hold_sample(const stream::Record& record, const stream::Sample& sample, bool may_stay);
  void write_until(std::uint64_t time_ns, std::vector<stream::Ring>& rings);

  RecordedStream& stream_;
  perf_event_attr attr_;
  BpfEngine* engine_;
  FileIds file_ids_;
  std::optional<CommandLines> command_lines_;  ///< none: they come from the kernel
  stream::HeldRecords held_;
  bool has_behind_ = false;           ///< the last record was memory after the next sample's copy
  std::uint64_t last_change_ns_ = 0;  ///< of the newest record that is not a sample
  DeepPace pace_;
  std::uint64_t last_flush_ns_ = 0;
  std::uint64_t pass_began_ns_ = 0, last_pass_began_ns_ = 0;
  std::uint64_t complete_ns_ = kNoLimit;
  std::vector<std::uint64_t> seen_by_last_pass_;  ///< of each ring: Ring::seen()
  bool has_taken_all_ = true;  ///< the last take() has read all records in the rings
  bool round_is_open_ = false;
  bool reports_losses_early_ = false;
  std::vector<std::uint64_t> last_ns_;  ///< the time of each ring's last record
  Passed passed_;
};

}  // namespace pe::recording
