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

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stream/records/event.h"
#include "stream/records/record.h"
#include "stream/records/sample.h"
#include "stream/stream_reader.h"
#include "stream/stream_writer.h"

namespace pe::stream {

// Holds records until no older record can come, and returns them in order of time.
//
// Code that merges the rings of several CPUs, or reads a badly merged stream, holds records here.
// It announces up to which time all records have arrived.  Bytes are copied once, into chunks that
// are reused, so in the long run nothing is allocated.  Records that stay in place are not copied.

class HeldRecords {
 public:
  /// Copies a record, given in consecutive pieces.  Records of equal time keep their order.
  void hold(std::uint64_t time_ns, std::initializer_list<Bytes> pieces);

  /// Holds `record` without copying it.  Its bytes must stay valid until next() has returned it and
  /// been called again.
  void hold_in_place(std::uint64_t time_ns, Bytes record);
  /// Returns how many such records are held.
  [[nodiscard]] std::size_t in_place() const noexcept { return in_place_; }

  /// From now on next() returns records that are not younger than `until_ns`.
  void make_ready(std::uint64_t until_ns);
  /// Makes the older half of the waiting records ready.
  void make_half_ready();

  struct Next {
    std::uint64_t time_ns;
    Record record;  ///< the view is valid until the next call
  };
  /// Returns the oldest record that is ready; nullopt if there is none.
  std::optional<Next> next();

  /// Returns the number of copied bytes that are held, without the record returned last.
  [[nodiscard]] std::size_t bytes() const noexcept { return held_bytes_; }
  /// Returns whether next() has returned all records.
  [[nodiscard]] bool is_empty() const noexcept { return ready_begin_ == held_.size(); }
  /// Returns whether some records must still wait.
  [[nodiscard]] bool has_waiting() const noexcept { return ready_end_ < held_.size(); }

 private:
  struct Chunk {
    std::vector<std::byte> bytes;
    std::size_t held = 0;  ///< records that are still in use
  };
  struct Held {
    std::uint64_t time_ns;
    std::uint64_t place;  ///< in the order of hold()
    Chunk* chunk;         ///< null: not copied
    Bytes bytes;
  };

  void release_last();
  Chunk& chunk_with_room(std::size_t bytes);

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<Held> held_;
  std::size_t ready_begin_ = 0, ready_end_ = 0;  ///< ready records: the sorted front part of held_
  std::size_t held_bytes_ = 0;
  std::size_t in_place_ = 0;
  bool last_is_in_place_ = false;
  Chunk* last_chunk_ = nullptr;  ///< of the record returned last
  std::uint64_t places_ = 0;
};

// Joins samples with the user part of their call chain, where the kernel writes that part later:
// when the thread returns to its program, in a record of its own (PERF_RECORD_CALLCHAIN_DEFERRED,
// perf record --call-graph fp,defer; from Linux 6.19 on).
//
// The sample's chain then ends with a mark and a number, and the later record starts with this
// number.  Source: linux/perf_event.h; tools/perf/util/session.c.

/// Whether the event asks for such records (attr.defer_callchain).
bool may_defer(const perf_event_attr& attr) noexcept;

/// Returns the number by which the user part of the sample's chain arrives; nullopt if the chain
/// has all of it, or it has arrived.
std::optional<std::uint64_t> deferred_part(const Sample& sample);

class DeferredChains {
 public:
  /// Receives a sample's time and record.  The record is valid until the callback returns.
  using OnSample = std::function<void(std::uint64_t, const Record&)>;

  /// Keeps a sample until its user part arrives.  Returns false if it need not wait, or if too many
  /// wait.
  bool keep(const Record& record, const perf_event_attr& attr);
  /// Passes on the samples whose user part the record has; joined, up to kMaxBytes of them.
  void join(const Record& deferred, const OnSample& on_sample);
  /// Passes on the samples with times up to `until_ns`, as they are.
  void release(std::uint64_t until_ns, const OnSample& on_sample);

  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

 private:
  struct Kept {
    perf_event_attr attr;
    std::uint64_t time_ns;
    std::vector<std::byte> bytes;
  };

  std::unordered_multimap<std::uint64_t, Kept> kept_;
  std::size_t bytes_ = 0;
  RecordBuilder builder_;
};

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
  /// See StreamReader::left_out_segments().
  [[nodiscard]] std::size_t left_out_segments() const noexcept {
    return reader_.left_out_segments();
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
