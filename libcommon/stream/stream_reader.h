// Reading a sample stream: perf's pipe format, or a perf.data file.
//
//   pipe       {magic "PERFILE2", u64 size = 16}, then records
//   perf.data  a header of 104 bytes that says where the attrs and the records
//              are, both read front to back, so that it may come through a pipe too;
//              behind the records "features", one of them build ids of files
//
// A record is {u32 type, u16 misc, u16 size} and size - 8 bytes.  A size below 8
// leaves no way to find the next record: reading ends there, with the place.
// Compressed records are handed out as what they hold, expanded_records.h.  AUXTRACE records, a
// processor's own trace, are stepped over with the data behind them, which nobody here can read.
// Source: tools/perf/Documentation/perf.data-file-format.txt.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/io/input.h"
#include "stream/expanded_records.h"
#include "stream/records/record.h"

namespace pe::stream {

class StreamReader {
 public:
  /// Reads the header.  `input` must outlive the reader.  Throws Error if this
  /// is no sample stream, or one of a machine with the other byte order.
  explicit StreamReader(Input& input);

  /// The next record; a perf.data file's attrs come first, as HEADER_ATTR
  /// records, several if there are very many ids (kMiscMoreIds), then its build ids, as
  /// HEADER_BUILD_ID records, if it is a file in which they can be reached: they stand at its end.
  /// A compressed record comes itself only if it could not be expanded.  nullopt at the end:
  /// damage() then says whether it was a good one. The view dies with the next call.
  std::optional<Record> next();

  /// Pipe format, rather than a perf.data file, whose header tells where it ends.
  [[nodiscard]] bool is_pipe_format() const noexcept { return is_pipe_format_; }

  /// Empty after a good end; else "truncated at byte 1234: …".
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

  /// The data behind AUXTRACE records that were stepped over.
  [[nodiscard]] std::uint64_t skipped_aux_bytes() const noexcept { return aux_bytes_; }

 private:
  void read_file_header();
  void add_attr_records(Bytes before_data, std::uint64_t attr_size, std::uint64_t attrs_at,
                        std::uint64_t attrs_bytes);
  void add_build_id_records(std::uint64_t features_at, std::uint64_t features);
  std::optional<Record> next_in_input();
  std::optional<Record> whole_record();
  std::optional<Record> note_if_not_expanded();
  bool skip_aux(std::uint64_t bytes);
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
  std::uint64_t position_ = 0;       ///< of begin_, in the input
  bool is_pipe_format_ = false;
  std::optional<std::uint64_t> data_end_;    ///< of the records; nullopt: the input's end
  std::deque<std::vector<std::byte>> made_;  ///< records made from a file's header
  std::vector<std::byte> current_made_;
  ExpandedRecords expanded_;
  std::optional<Record> compressed_;  ///< what expanded_ is at
  std::uint64_t compressed_at_ = 0;   ///< in the input
  std::string expansion_damage_;      ///< what is not compressed is read on behind it
  std::uint64_t aux_bytes_ = 0;
  std::string damage_;
};

}  // namespace pe::stream
