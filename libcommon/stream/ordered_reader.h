// The records of a stream in the order of their times.
//
// A recorder drains one ring per CPU after the other, so a stream is ordered
// only within what came from one ring.  FINISHED_ROUND marks the end of one pass
// over all rings: after it no record can come that is older than the newest one
// of the pass before (tools/perf/util/ordered-events.h, "finished round").
// Records are held back accordingly; those without a time (HEADER_ATTR, or made
// up from /proc before recording) pass at once, and ours, which belong to a place in the
// stream, keep it.
//
// Without such marks up to kMaxHeldBytes are held, then the older half is let go.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stream/held_records.h"
#include "stream/records/event.h"
#include "stream/records/sample.h"
#include "stream/stream_reader.h"

namespace pe::stream {

class OrderedReader {
 public:
  static constexpr std::size_t kMaxHeldBytes = 256UL * 1024 * 1024;

  /// `input` must outlive the reader.  Throws Error as StreamReader does.
  explicit OrderedReader(Input& input, std::size_t max_held_bytes = kMaxHeldBytes)
      : reader_(input), max_held_bytes_(max_held_bytes) {}

  /// The next record; the view dies with the next call.
  std::optional<Record> next();

  /// The events met so far; their records are also handed out.
  [[nodiscard]] const EventTable& events() const noexcept { return events_; }

  /// How the input ended, once next() has returned nullopt: empty, or what is wrong with it.  Every
  /// recorder ends a pipe with FINISHED_ROUND, and ours mark those that are not the last
  /// (kMiscMoreRounds): a pipe without such an end was cut off, even between records.
  [[nodiscard]] std::string damage() const;

  /// Records handed out after younger ones (a stream that breaks the promise above).
  [[nodiscard]] std::uint64_t late_records() const noexcept { return late_; }
  /// HEADER_ATTR and EVENT_UPDATE records that could not be understood.
  [[nodiscard]] std::uint64_t malformed_events() const noexcept { return malformed_events_; }
  /// As StreamReader counts them.
  [[nodiscard]] std::uint64_t skipped_aux_bytes() const noexcept {
    return reader_.skipped_aux_bytes();
  }

 private:
  std::optional<Record> next_ready();
  std::optional<Record> pass_or_hold(const Record& record);

  StreamReader reader_;
  EventTable events_;
  std::size_t max_held_bytes_;
  HeldRecords held_;
  std::uint64_t newest_ns_ = 0;  ///< of all records so far
  std::uint64_t newest_of_last_round_ns_ = 0;
  std::uint64_t handed_out_ns_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t malformed_events_ = 0;
  bool at_end_ = false;
  bool may_end_ = false;  ///< no record of the kernel since a FINISHED_ROUND that may be the last
  std::vector<std::byte> round_;  ///< the FINISHED_ROUND to hand out behind its records
  bool round_is_due_ = false;
};

}  // namespace pe::stream
