// Reads a sample stream: perf's pipe format, or a perf.data file.
//
//   pipe       {magic "PERFILE2", u64 size = 16}, then records
//   perf.data  a header of 104 bytes with the places of the attrs and the records.  Both are read
//              front to back, so the file may also come through a pipe.  After the records there
//              are "features"; one of them holds the build ids of files.
//   folder     of `perf record --threads`: a perf.data file "data", and "data.0", "data.1" and so
//   on
//              with more records, those of other threads of perf.  Rounds end in each file alone,
//              so the reader leaves their ends out: the records are put in order as a whole.
//   segments   a folder of pipes, which are read as one (segments.h)
//
// A record is {u32 type, u16 misc, u16 size} and size - 8 bytes.  After a size below 8 the next
// record cannot be found: the reader stops and reports the place.  It returns the content of
// compressed records in their place (expanded_records.h).  It skips AUXTRACE records, a processor's
// own trace, with the data after them, because our tools cannot read that.
// Source: tools/perf/Documentation/perf.data-file-format.txt.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/compression.h"
#include "base/io/input.h"
#include "stream/records/record.h"
#include "stream/segments.h"

namespace pe::stream {

// Expands the compressed records that `perf record -z` writes.
//
//   COMPRESSED   {header, data up to the record's end}
//   COMPRESSED2  {header, u64 size, data of that size, padding to 8}
//
// The concatenated data of all these records is one Zstandard stream.  It contains the records from
// the kernel's rings; a record may start in one compressed record and end in the next.  perf
// compresses only the kernel's own types (below 64).  Another type, or a record of less than 8
// bytes, means that the record boundary is lost.  Damage is permanent, because all data in the
// stream depends on the data before it.
//
// The data is expanded gradually: 64 KiB can expand to gigabytes, but memory is limited to a block
// and zstd's window.
// Source: tools/perf/util/zstd.c, tools/perf/util/session.c, linux/perf/event.h.

class ExpandedRecords {
 public:
  /// The most bytes that one compressed record may expand to.  perf compresses the content of one
  /// ring at a time, by default 512 KiB, so only damaged data exceeds this.
  static constexpr std::size_t kMaxBytesOfOne = 256UL * 1024 * 1024;

  /// Continues with a COMPRESSED or COMPRESSED2 record, after next() has returned nullopt.  Its
  /// bytes must stay valid until next() returns nullopt again.
  void begin(const Record& compressed);

  /// Returns the next record; the view is valid until the next call.  Returns nullopt if more
  /// compressed records are needed, or if is_damaged().
  std::optional<Record> next();

  [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }
  /// Returns whether only a part of a record has arrived.
  [[nodiscard]] bool has_part() const noexcept { return begin_ < end_; }

 private:
  std::optional<Record> take_record();
  bool expand_more();

  std::unique_ptr<ZstdExpander> zstd_;  ///< null until the first compressed record
  Bytes compressed_;                    ///< data of the current record that is not expanded yet
  std::size_t expanded_of_this_ = 0;    ///< bytes
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< bytes of buffer_ that next() has not returned
  bool is_damaged_ = false;
};

class StreamReader {
 public:
  /// Reads the header.  `input` must outlive the reader.  Throws Error if the input is not a sample
  /// stream, or is from a machine with the other byte order.
  explicit StreamReader(Input& input);

  /// Returns the next record.  The attrs of a perf.data file come first, as HEADER_ATTR records; an
  /// event with very many ids has several (kMiscMoreIds).  Its build ids follow as HEADER_BUILD_ID
  /// records, and what it says about the recording as HEADER_FEATURE records (feature.h), if the
  /// input can seek, because they are at the end of the file.  A compressed record
  /// itself is returned only if it could not be expanded.  The head of a segment is returned where
  /// another recorder's events begin.  Returns nullopt at the end, after which damage() reports
  /// whether the end was good.  The view is valid until the next call. Throws Error if the stream
  /// has a later version than ours (kStreamVersion).
  std::optional<Record> next();

  /// Returns true for the pipe format, false for a perf.data file, whose header contains its end.
  [[nodiscard]] bool is_pipe_format() const noexcept { return is_pipe_format_; }

  /// Returns an empty text after a good end; else "truncated at byte 1234: …".
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

  /// Returns the number of skipped bytes after AUXTRACE records.
  [[nodiscard]] std::uint64_t skipped_aux_bytes() const noexcept { return aux_bytes_; }

  /// Returns the number of segments that were left out, because the machine was started after them,
  /// because the recorder has removed them since, or because they are damaged.
  [[nodiscard]] std::size_t left_out_segments() const noexcept { return left_out_segments_; }

 private:
  void read_file_header();
  void add_attr_records(Bytes before_data, std::uint64_t attr_size, std::uint64_t attrs_at,
                        std::uint64_t attrs_bytes);
  void add_feature_records(std::uint64_t features_at, std::uint64_t features);
  void add_feature(std::uint64_t feature, Bytes data);
  void add_event_names(Bytes data);
  void add_tracing_data(Bytes data);
  void add_made(std::string_view record);
  std::optional<Record> next_in_input();
  std::optional<Record> whole_record();
  std::optional<Record> note_if_not_expanded();
  bool open_next_file();
  bool is_skipped(const Record& record);
  bool open_part();
  bool open_segment();
  bool skip_head(const Record& record);
  bool skip(std::uint64_t bytes, const char* what);
  void add_event(perf_event_attr attr, Bytes ids);
  bool ensure(std::size_t bytes);
  bool ensure_or_note(std::size_t bytes, const char* what);
  std::optional<std::size_t> full_size(const perf_event_header& header);
  [[nodiscard]] Bytes unread() const noexcept {
    return Bytes(buffer_).subspan(begin_, end_ - begin_);
  }
  void note_damage(const std::string& what);

  Input& input_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< unread bytes of buffer_
  std::uint64_t position_ = 0;       ///< place of begin_ in the input
  bool is_pipe_format_ = false;
  bool has_parts_ = false;  ///< it is the file "data" of a folder
  bool is_in_part_ = false;
  std::size_t segment_ = 0;  ///< its number in the input
  std::size_t left_out_segments_ = 0;
  std::optional<SegmentHead> segment_head_;  ///< of the last segment that had one
  std::optional<std::uint64_t> data_end_;    ///< end of the records; nullopt: the input's end
  std::deque<std::vector<std::byte>> made_;  ///< records made from a file's header
  std::vector<std::byte> current_made_;
  ExpandedRecords expanded_;
  std::optional<Record> compressed_;  ///< the record that expanded_ expands
  std::uint64_t compressed_at_ = 0;   ///< its place in the input
  std::string expansion_damage_;      ///< after it, the reader continues with uncompressed records
  std::uint64_t aux_bytes_ = 0;
  std::string damage_;
};

}  // namespace pe::stream
