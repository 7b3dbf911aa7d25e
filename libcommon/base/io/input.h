// Reads a file, or stdin when the name is "-".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/fd.h"

namespace pe {

/// A file or standard input, read front to back.
class Input {
 public:
  /// Opens `path`; "-" duplicates `stdin_fd`.  Of a directory, as `perf record --threads` makes it,
  /// opens the file "data"; of one that `pe-record --keep` makes, the first segment.  Throws Error,
  /// also for a directory without such files.
  static Input open(const std::string& path, int stdin_fd);

  /// Continues with the next file beside the file "data": "data.0", "data.1" and so on.  Returns
  /// false, and stays with the current file, if there is no such regular file.
  bool open_next_part();

  /// Returns the names of the segments, in their order; empty if the input is no such directory.
  [[nodiscard]] const std::vector<std::string>& segments() const noexcept { return segments_; }
  /// Leaves out all segments but [first, end), and continues with the first of these, as
  /// open_segment() does.
  bool choose_segments(std::size_t first, std::size_t end);
  /// Continues with this segment.  Returns false, and stays with the current file, if it is gone or
  /// not a regular file.
  bool open_segment(std::size_t number);

  /// Reads at most `into.size()` bytes; 0 only at the end.  Throws Error.
  std::size_t read(std::span<std::byte> into);

  /// Reads at `offset` from the file's position when it was opened, and does not advance.  Reads
  /// fewer bytes than `into` holds at the end of the file, and none if the input is not a file.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const;

  /// Returns the next `bytes` bytes (fewer if the input is shorter), which read() will still
  /// return. The view is valid until the next call.
  Bytes peek(std::size_t bytes);

  /// Returns this input as it was opened, so that it can be read twice: call it before the first
  /// read.  What is not a file is copied into one without a name.  Throws Error.
  Input twin();
  /// The same for a file or a folder of segments, which is not copied.  Throws Error.
  [[nodiscard]] Input again() const;

  /// Reads over the mark of UTF-8 (U+FEFF), which some editors and shells of Windows put before
  /// text.
  void skip_byte_order_mark();

  /// Returns the name for messages: the path, or "stdin".
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  Input(Fd fd, std::string name);
  static Input open_folder(const std::string& path, Fd folder);

  Fd fd_;
  std::string name_;
  std::string data_path_;  ///< of the file "data", which may have parts; else empty
  Fd folder_;              ///< of segments_
  std::vector<std::string> segments_;
  std::size_t parts_ = 0;          ///< those opened so far
  std::uint64_t start_ = 0;        ///< the file's position when it was opened
  std::vector<std::byte> peeked_;  ///< read() returns these before anything else
};

/// Returns the name of a segment, "0000000042.pe".
std::string segment_name(std::uint64_t number);
/// Returns the number of a segment with that name; nullopt if it is the name of something else.
std::optional<std::uint64_t> segment_number(std::string_view name);
/// Returns the names of the segments in a folder, in their order.
std::vector<std::string> segments_in(const Fd& folder);

/// Returns the name of Input::open(path) for messages: the path, or "stdin".
inline std::string input_name(const std::string& path) { return path == "-" ? "stdin" : path; }

/// Returns all of a small file, such as those in /proc.  Returns nullopt if it cannot be opened or
/// read, or is longer than `limit_bytes`.
std::optional<std::string> read_small_file(const std::string& path, std::size_t limit_bytes);

// Reads the lines of an input, without copying those that fit the buffer.
//
// The length of a line is limited, because 100 KB of compressed text can be one line of gigabytes.

/// Returns the lines of an Input, each without its newline.  A last line that lacks one still
/// counts.  Memory: one block, or the longest line.
class LineReader {
 public:
  static constexpr std::size_t kLongestBytes = std::size_t{256} << 20;  ///< a stack of 4M frames

  /// `input` must outlive the reader.
  explicit LineReader(Input& input, std::size_t longest_bytes = kLongestBytes);

  /// Returns the next line, or nullopt at the end.  The view is valid until the next call.
  /// Throws Error if the input cannot be read, or a line is longer than `longest_bytes`.
  std::optional<std::string_view> next();

  /// Returns the number of the line that next() returned last, counted from 1.
  [[nodiscard]] std::uint64_t line_number() const noexcept { return line_number_; }

  /// Returns whether the line that next() returned last had no newline.  Only the last line of the
  /// input can lack it.
  [[nodiscard]] bool lacks_newline() const noexcept { return lacks_newline_; }

 private:
  bool fill();

  Input& input_;
  std::size_t longest_bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< unread bytes of buffer_
  bool at_end_ = false;
  bool lacks_newline_ = false;
  std::uint64_t line_number_ = 0;
};

}  // namespace pe
