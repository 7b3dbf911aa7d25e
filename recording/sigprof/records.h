// Writes the stream of a program that profiles itself: the records of pe-stream(5), with samples
// that contain copies of stacks.  pe-symbolize walks these.  The event counts nanoseconds: a
// sample's period is the time that it represents.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/byte_reader.h"
#include "recording/signal/layout.h"
#include "stream/proc/maps_line.h"
#include "stream/records/record.h"

namespace pe::inprocess {

// The descriptor of a stream.  The writing thread may wait for the reader, but only until a
// deadline once the run stops.
//
// Except to regular files, a write is at most PIPE_BUF, which a pipe with room accepts without
// waiting.  So Sink notices a reader that has stopped.  A program that closes all descriptors, as
// daemons do, also closes this one, and another file may get its number.  Sink notices that, and
// leaves the other file alone.  SIGPIPE and SIGXFSZ must be blocked in the calling thread.

class Sink {
 public:
  enum class State : std::uint32_t { kOpen, kFailed, kTooSlow };

  /// Works in zeroed memory.  Takes ownership of `fd`.  Waiting stops at `deadline_ns`
  /// (CLOCK_MONOTONIC; 0: never), which others may set at any time.
  void open(int fd, const std::uint64_t& deadline_ns) noexcept;
  void close() noexcept;

  /// Writes all bytes.  False if that fails; later calls write nothing.
  bool write(Bytes bytes) noexcept;

  [[nodiscard]] State state() const noexcept { return state_; }
  /// The errno of the failure.
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return written_; }

 private:
  bool wait() noexcept;
  [[nodiscard]] bool is_late() const noexcept;
  [[nodiscard]] bool is_still_the_same() const noexcept;
  [[nodiscard]] long write_some(Bytes bytes) const noexcept;

  const std::uint64_t* deadline_ns_;
  std::uint64_t written_;
  std::uint64_t device_, inode_;  ///< of the opened file
  int fd_;
  int error_;
  State state_;
  bool is_socket_, may_wait_;
};

// Builds the records of a sample stream in the caller's memory, and writes them when that is full.
//
// stream::RecordBuilder allocates and throws, which a program's own profiler must not do.

class RecordBuffer {
 public:
  static constexpr std::size_t kMostRecordBytes = 65'528;
  static constexpr std::size_t kLeastRoom = 2 * kMostRecordBytes;

  /// Call this first.  `room` has at least kLeastRoom bytes.  Both arguments must outlive this.
  void begin_in(std::span<std::byte> room, Sink& sink) noexcept {
    room_ = room.data();
    room_bytes_ = room.size();
    used_ = record_at_ = 0;
    samples_in_room_ = weight_in_room_ = written_samples_ = written_weight_ = 0;
    has_records_ = round_is_due_ = false;
    sink_ = &sink;
  }

  /// Starts another round of records.  Its first record comes after the end of the previous round.
  /// So a stream that is cut off does not end as a whole one does.
  void begin_round() noexcept { round_is_due_ = has_records_; }

  /// Starts a record.  Its parts together must not exceed kMostRecordBytes; a part that does not
  /// fit is left out.
  RecordBuffer& begin(std::uint32_t type, std::uint16_t misc = 0) noexcept {
    if (round_is_due_) {
      round_is_due_ = false;
      begin(stream::kRecordFinishedRound, stream::kMiscMoreRounds).finish();
    }
    if (room_bytes_ - used_ < kMostRecordBytes)
      flush();
    record_at_ = used_;
    has_records_ = type != stream::kRecordFinishedRound;
    return add(perf_event_header{type, misc, 0});
  }
  template <typename T>
  RecordBuffer& add(const T& value) noexcept {
    return add_bytes(std::as_bytes(std::span(&value, 1)));
  }
  RecordBuffer& add_bytes(Bytes bytes) noexcept {
    if (bytes.size() <= left()) {
      if (!bytes.empty())
        std::memcpy(room_ + used_, bytes.data(), bytes.size());
      used_ += bytes.size();
    }
    return *this;
  }
  /// Adds `text` and a NUL.
  RecordBuffer& add_string(std::string_view text) noexcept {
    return add_bytes(std::as_bytes(std::span(text))).add('\0');
  }
  /// Pads the record to a multiple of eight bytes.
  RecordBuffer& pad() noexcept {
    constexpr std::size_t kWord = 8;
    while ((used_ - record_at_) % kWord != 0)
      add('\0');
    return *this;
  }
  void finish() noexcept {
    const auto size = static_cast<std::uint16_t>(used_ - record_at_);
    std::memcpy(room_ + record_at_ + offsetof(perf_event_header, size), &size, sizeof size);
    record_at_ = used_;
  }

  /// Adds bytes that are not a record: the stream's header.
  template <typename T>
  void add_plain(const T& value) noexcept {
    add(value);
    record_at_ = used_;
  }

  /// Counts the last record as a sample of `weight`.
  void count_sample(std::uint64_t weight) noexcept {
    ++samples_in_room_;
    weight_in_room_ += weight;
  }

  /// Writes all finished records, and drops those that cannot be written.
  void flush() noexcept {
    if (sink_->write({room_, record_at_})) {
      written_samples_ += samples_in_room_;
      written_weight_ += weight_in_room_;
    }
    used_ = record_at_ = 0;
    samples_in_room_ = weight_in_room_ = 0;
  }

  [[nodiscard]] std::uint64_t written_samples() const noexcept { return written_samples_; }
  [[nodiscard]] std::uint64_t written_weight() const noexcept { return written_weight_; }

 private:
  [[nodiscard]] std::size_t left() const noexcept {
    return kMostRecordBytes - (used_ - record_at_);
  }

  std::byte* room_;
  std::size_t room_bytes_, used_, record_at_;
  std::uint64_t samples_in_room_, weight_in_room_, written_samples_, written_weight_;
  bool has_records_, round_is_due_;
  Sink* sink_;
};

/// The process, thread and time of a record; times are of CLOCK_MONOTONIC.
struct When {
  std::uint32_t pid, tid;
  std::uint64_t time_ns;  ///< 0: from the start on
};

/// Writes the stream's header and its event.
void write_head(RecordBuffer& buffer, const SampleSettings& settings) noexcept;
/// Writes the name of a thread.
void write_name(RecordBuffer& buffer, const When& when, std::string_view name) noexcept;
/// Writes the start or end of a thread.  `type` is PERF_RECORD_FORK or PERF_RECORD_EXIT.
void write_task(RecordBuffer& buffer, std::uint32_t type, const When& when) noexcept;
/// Writes a mapping.  `build_id` may be empty; one of more than 20 bytes is ignored.
void write_mapping(RecordBuffer& buffer, const When& when, const stream::MapsLine& map,
                   Bytes build_id) noexcept;
/// Writes a sample as a handler has written it.
void write_sample(RecordBuffer& buffer, const stream::Record& sample) noexcept;
void write_lost(RecordBuffer& buffer, std::uint64_t lost) noexcept;
void write_end(RecordBuffer& buffer) noexcept;

}  // namespace pe::inprocess
