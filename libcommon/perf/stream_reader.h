// Reading a sample stream: perf's pipe format, or a perf.data file.
//
//   pipe       {magic "PERFILE2", u64 size = 16}, then records
//   perf.data  a header of 104 bytes that says where the attrs and the records
//              are, both read front to back, so that it may come through a pipe too
//
// A record is {u32 type, u16 misc, u16 size} and size - 8 bytes.  A size below 8
// leaves no way to find the next record: reading ends there, with the place.
// Source: tools/perf/Documentation/perf.data-file-format.txt.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "io/input.h"
#include "perf/record.h"

namespace pe::perf {

class StreamReader {
 public:
  /// Reads the header.  `input` must outlive the reader.  Throws Error if this
  /// is no sample stream, or one of a machine with the other byte order.
  explicit StreamReader(io::Input& input);

  /// The next record; a perf.data file's attrs come first, as HEADER_ATTR
  /// records.  nullopt at the end: damage() then says whether it was a good one.
  /// The view dies with the next call.
  std::optional<Record> next();

  /// Pipe format, rather than a perf.data file, whose header tells where it ends.
  [[nodiscard]] bool is_pipe_format() const noexcept { return is_pipe_format_; }

  /// Empty after a good end; else "truncated at byte 1234: …".
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

 private:
  void read_file_header();
  void add_attr_records(Bytes before_data, std::uint64_t attr_size, std::uint64_t attrs_at,
                        std::uint64_t attrs_bytes);
  bool ensure(std::size_t bytes);
  bool ensure_or_note(std::size_t bytes, const char* what);
  std::optional<std::size_t> full_size(const perf_event_header& header);
  [[nodiscard]] Bytes unread() const noexcept {
    return Bytes(buffer_).subspan(begin_, end_ - begin_);
  }
  void note_damage(const std::string& what);

  io::Input& input_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< unread bytes of buffer_
  std::uint64_t position_ = 0;       ///< of begin_, in the input
  bool is_pipe_format_ = false;
  std::optional<std::uint64_t> data_end_;    ///< of the records; nullopt: the input's end
  std::deque<std::vector<std::byte>> made_;  ///< records made from a file's header
  std::vector<std::byte> current_made_;
  std::string damage_;
};

}  // namespace pe::perf
