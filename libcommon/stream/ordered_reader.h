// Reads the records of a stream in the order of their times.
//
// A recorder drains the rings of the CPUs one after the other, so only the records of one ring are
// in order.  FINISHED_ROUND marks the end of one pass over all rings.  After it no record can come
// that is older than the newest one of the pass before (tools/perf/util/ordered-events.h, "finished
// round").  The reader holds records back until then.  Records without a time (HEADER_ATTR, or
// synthesized from /proc before recording) pass at once.  Our own records, and samples without a
// time, keep their place in the stream.
//
// Without such marks the reader holds up to kMaxHeldBytes and then releases the older half.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stream/deferred_chains.h"
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

  /// Returns the next record; the view is valid until the next call.
  std::optional<Record> next();

  /// Returns the events read so far; next() also returns their records.
  [[nodiscard]] const EventTable& events() const noexcept { return events_; }
  /// As EventTable::weigh_by().
  void weigh_by(std::string field) { events_.weigh_by(std::move(field)); }

  /// Returns how the input ended, after next() has returned nullopt: empty, or the damage found.
  /// Every recorder ends a pipe with FINISHED_ROUND, and ours mark each one that is not the last
  /// (kMiscMoreRounds).  A pipe without such an end was cut off, even between records.
  [[nodiscard]] std::string damage() const;

  /// Returns how many records were returned after younger ones: the stream broke the rule above.
  [[nodiscard]] std::uint64_t late_records() const noexcept { return late_; }
  /// Returns the number of malformed HEADER_ATTR, EVENT_UPDATE and TRACING_DATA records.
  [[nodiscard]] std::uint64_t malformed_events() const noexcept { return malformed_events_; }
  /// Returns the number of bytes that StreamReader skipped.
  [[nodiscard]] std::uint64_t skipped_aux_bytes() const noexcept {
    return reader_.skipped_aux_bytes();
  }

 private:
  std::optional<Record> next_ready();
  std::optional<bool> apply_to_events(const Record& record);
  std::optional<Record> pass_or_hold(const Record& record);
  void note_handed_out(std::uint64_t time_ns);
  void release_chains(std::uint64_t until_ns);
  void hold(const Record& record, const perf_event_attr& attr, std::uint64_t time_ns);

  StreamReader reader_;
  EventTable events_;
  std::size_t max_held_bytes_;
  HeldRecords held_;
  DeferredChains chains_;
  std::uint64_t newest_ns_ = 0;  ///< of all records so far
  std::uint64_t newest_of_last_round_ns_ = 0;
  std::uint64_t handed_out_ns_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t malformed_events_ = 0;
  bool is_in_order_ = false;  ///< the stream promises it (kMiscInOrder)
  bool at_end_ = false;
  bool may_end_ = false;  ///< no record of the kernel since a FINISHED_ROUND that may be the last
  std::vector<std::byte> round_;  ///< the FINISHED_ROUND to return after its records
  bool round_is_due_ = false;
};

}  // namespace pe::stream
