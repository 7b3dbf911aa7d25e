// From the rings to the stream, in the order of time.
//
// Each ring is ordered, all of them together are not.  A record older than the
// moment at which the last pass over the rings began has been seen by now, so a
// pass writes, sorted, what is older than that and keeps the rest for the next.
//
// A pass looks through all rings before it unwinds anything, and again when that takes long.
// Samples that will be unwound stay in their ring until the next pass has done so, as long as rings
// have much room: copying them would cost as much as unwinding.  When there is less room,
// everything is copied, and rings are emptied.  What waits is at most what two passes take, and
// kMaxHeldBytes: beyond that records stay in the rings, and what these cannot hold is lost by the
// kernel, which counts it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "record/engines/bpf_engine.h"
#include "record/stream/deep_pace.h"
#include "record/stream/recorded_stream.h"
#include "stream/held_records.h"
#include "stream/records/counter.h"
#include "stream/records/lost_samples.h"

namespace pe::record {

/// What passed, for the closing line.
struct Passed {
  std::uint64_t samples = 0;
  stream::LostSamples lost;     ///< dropped by the kernel because a ring was full
  std::uint64_t throttled = 0;  ///< times that the kernel paused a counter
  std::unordered_set<std::uint32_t> threads;
};

class Drain {
 public:
  /// All events share `attr`'s layout.  `stream` must outlive this; and `engine`, if samples come
  /// from there, not from the rings.
  Drain(RecordedStream& stream, const perf_event_attr& attr, BpfEngine* engine = nullptr)
      : stream_(stream), attr_(attr), engine_(engine), pace_(attr) {}

  /// From now on a loss (PERF_RECORD_LOST) comes before everything that happened since its ring was
  /// full, not when the kernel told it, which is when there was room again.
  void tell_losses_early() noexcept { tells_losses_early_ = true; }

  /// One pass over the rings; FINISHED_ROUND stands between what two passes have written.  What
  /// was written leaves our hands a few times a second.
  void pass(std::vector<stream::Ring>& rings);
  /// The last pass: everything is written, but for the end of the round.
  void finish(std::vector<stream::Ring>& rings);

  /// How soon the next pass should come, in nanoseconds: if stacks have just been so deep that the
  /// next sample should be seen at once, or if the engine's tables lag behind.
  [[nodiscard]] std::optional<std::uint64_t> urgency_ns() const;

  /// All that is older has been handed on.
  [[nodiscard]] std::uint64_t written_until_ns() const noexcept { return last_pass_began_ns_; }

  [[nodiscard]] const Passed& passed() const noexcept { return passed_; }

 private:
  static constexpr std::size_t kMaxHeldBytes = 256UL * 1024 * 1024;

  void pause() const;
  void take(std::vector<stream::Ring>& rings);
  void hold(const stream::Record& record, bool may_stay, std::uint64_t& last_ns);
  void hold_sample(const stream::Record& record, const stream::Sample& sample, bool may_stay);
  void write_until(std::uint64_t time_ns, std::vector<stream::Ring>& rings);

  RecordedStream& stream_;
  perf_event_attr attr_;
  BpfEngine* engine_;
  stream::HeldRecords held_;
  std::uint64_t last_change_ns_ = 0;  ///< of the newest record that is no sample
  DeepPace pace_;
  std::uint64_t last_flush_ns_ = 0;
  std::uint64_t pass_began_ns_ = 0, last_pass_began_ns_ = 0;
  std::vector<std::uint64_t> seen_by_last_pass_;  ///< of each ring
  bool has_taken_all_ = true;                     ///< the last time, of what there was in the rings
  bool round_is_open_ = false;
  bool tells_losses_early_ = false;
  std::vector<std::uint64_t> last_ns_;  ///< of each ring, when its last record was written
  Passed passed_;
};

}  // namespace pe::record
