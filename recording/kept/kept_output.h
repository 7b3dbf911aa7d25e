// Keeps the last minutes of a recording: a folder of segments, of which the oldest are removed
// (stream/segments.h).
//
// The folder belongs to the user alone.  A segment grows by whole pieces, which end in a round, so
// it can be read at any time, also after the recorder was killed.  Before a segment is followed by
// the next but one, its data is on the disk.
//
// If the disk is full, older segments go first.  If that does not help, samples are dropped and
// counted, and the recording goes on.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/io/compression.h"
#include "base/io/output.h"
#include "recording/kept/segment_state.h"
#include "recording/kept/written_records.h"
#include "stream/segments.h"

namespace pe::recording {

struct KeepLimits {
  std::uint64_t ns = 0;     ///< keep at least what is younger
  std::uint64_t bytes = 0;  ///< but no more than this
};

class KeptOutput final : public Output {
 public:
  /// Creates the folder, if there is none.  `say` prints a line for the user.  Throws Error: it
  /// belongs to somebody else, or others may read it; a recorder uses it; it has other files.
  KeptOutput(const std::string& path, const KeepLimits& limits,
             std::function<void(const std::string&)> say);

  /// Accepts whole records of a stream, after its header.
  void write(std::string_view bytes) override;
  /// Writes everything up to the last round, which may wait for a second.  Throws Error if the
  /// folder is gone.
  void flush() override;

  /// "12 segments (3.4 MB) kept in /var/lib/...", for the closing lines.
  [[nodiscard]] std::string describe() const;
  /// Returns how many samples were dropped because the disk was full.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  struct Segment {
    std::uint64_t number;
    std::uint64_t bytes;
    std::uint64_t end_ns;  ///< when it got its last piece (CLOCK_MONOTONIC)
  };

  void open_folder();
  void list();
  void take(const stream::Record& record);
  void write_pending();
  void begin_segment();
  void end_segment();
  void append(std::string& out, std::string_view records, ZstdCompressor::After after);
  bool write_piece(std::string_view piece);
  void drop();
  void make_room(std::uint64_t more_bytes);
  bool remove_oldest();
  [[nodiscard]] std::uint64_t kept_bytes() const;

  std::string path_;
  KeepLimits limits_;
  std::function<void(const std::string&)> say_;
  Fd folder_;
  std::deque<Segment> segments_;  ///< the oldest first; the last is file_'s, if that is open
  Fd file_, last_file_;           ///< the current segment, and the one before it
  std::optional<ZstdCompressor> compressor_;
  SegmentState state_;
  stream::SegmentHead head_;
  std::string pending_;                  ///< records that are not written yet
  std::size_t until_round_ = 0;          ///< bytes of pending_ before the last round
  std::uint64_t written_ns_ = 0;         ///< when the last piece was
  std::size_t samples_until_round_ = 0;  ///< in pending_ before the last round
  std::size_t samples_ = 0;              ///< in pending_
  WrittenRecords written_;
  std::uint64_t dropped_ = 0, unreported_ = 0;
  bool is_full_ = false;  ///< the disk, and the user knows
};

}  // namespace pe::recording
