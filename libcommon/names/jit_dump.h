// Reads symbols of code compiled at run time from a jitdump: jit-PID.dump.
//
// The compiling program appends a record for each function: the address of its code, its name, its
// source lines, the code itself.  The program may reuse addresses, and each record has a time.  So
// call advance() to the time of a sample before you look up its addresses.  The program maps a page
// of the file, and so a recording shows the path of the file.
//
//   header          {u32 magic "JiTD", u32 version, u32 size, u32 machine, u32 0, u32 pid,
//                    u64 time, u64 flags}
//   record          {u32 type, u32 size, u64 time}, then by type
//     0 load        {u32 pid, u32 tid, u64 vma, u64 code, u64 code_bytes, u64 index, name\0, code}
//     1 move        {u32 pid, u32 tid, u64 vma, u64 old, u64 new, u64 code_bytes, u64 index}
//     2 debug info  {u64 code, u64 n, n of {u64 avma, u32 line, u32 column, file\0}};
//                   precedes its load
//     4 unwinding   {u64 bytes, u64 header_bytes, u64 mapped_bytes, .eh_frame, .eh_frame_hdr};
//                   precedes its load
//     others        (3 close) are skipped
//
// The file belongs to the program, as a perf map does (jit_map.h), with the same rules of ownership
// and similar limits.  It is read gradually, front to back; the code is not read at all.
// Source: tools/perf/Documentation/jitdump-specification.txt, tools/perf/util/jitdump.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/byte_reader.h"
#include "base/io/regular_file.h"
#include "names/jit_map.h"

namespace pe::names {

struct JitLine {
  std::string_view file;  ///< as in the dump; valid as long as the dump
  std::uint32_t line;
};

/// Call frame information of a function.
struct JitFrames {
  std::uint64_t start, code_bytes;  ///< start (avma) and size of the code
  Bytes eh_frame;                   ///< .eh_frame without its header; valid as long as the dump
};

class JitDump {
 public:
  static constexpr std::uint64_t kMaxFileBytes = 2ULL << 30;
  static constexpr std::size_t kMaxLines = 16U << 20;
  static constexpr std::size_t kMaxFilesBytes = 64U << 20;
  static constexpr std::size_t kMaxFramesBytes = 64U << 20;

  /// Opens `path`, which must belong to `owner`; reads only its header.  A file that is no jitdump,
  /// or has the other byte order, is kUnreadable.  A file that ends within its header may become a
  /// jitdump: a program maps its dump before it writes its buffer.  `payer` is as for JitMapFile.
  static std::variant<JitDump, JitMapFailure> open(const std::string& path, uid_t owner,
                                                   pid_t root_of = 0, Spender* payer = nullptr);
  /// Does the same for a file that is already open.
  static std::variant<JitDump, JitMapFailure> check(RegularFile file, Spender* payer = nullptr);

  /// Reads the records up to `time_ns`, CLOCK_MONOTONIC; all records, if the file has the times of
  /// another clock.  Costs a comparison if no record is due, and one fstat(2) at the file's end.
  void advance(std::uint64_t time_ns, const OnCodeChange& on_change);

  /// Finds the symbol at `avma` at the time reached.
  [[nodiscard]] std::optional<JitSymbol> find(std::uint64_t avma) const { return map_.find(avma); }
  /// Returns the source line, if the dump has it.
  [[nodiscard]] std::optional<JitLine> line_of(std::uint64_t avma) const;

  /// Returns the unwind information of the function at `avma`, if the dump has it.
  [[nodiscard]] std::optional<JitFrames> frames_of(std::uint64_t avma) const;

  /// Returns the number of records that were malformed or exceeded a limit.
  [[nodiscard]] std::uint64_t bad_records() const noexcept { return bad_records_; }
  /// Whether the program has not yet written all records up to the time reached.  The file then
  /// ends within a record, as the end of a buffer does, or within the header.
  [[nodiscard]] bool is_unfinished() const noexcept {
    return !next_ && !is_damaged_ && !is_cut_ && (size_ > position_ || position_ == 0);
  }
  /// Whether the file exceeds kMaxFileBytes, so that only its start is read.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }

 private:
  struct Line {
    std::uint64_t avma;
    std::uint32_t line;
    std::uint32_t file;  ///< in files_
  };
  struct Prefix {
    std::uint32_t type, size;
    std::uint64_t time_ns;
  };

  JitDump(Fd fd, Spender* payer) : fd_(std::move(fd)), payer_(payer) {
    if (payer != nullptr)
      map_.pay_by(*payer);
  }
  void read_header();
  bool has_grown();
  Bytes bytes_at(std::uint64_t offset, std::size_t size);
  std::optional<Prefix> next_prefix();
  void take_in(const Prefix& prefix, const OnCodeChange& on_change);
  bool load(ByteReader record, const OnCodeChange& on_change);
  bool move(ByteReader record, const OnCodeChange& on_change);
  bool take_lines(ByteReader record);
  bool take_frames(ByteReader record);
  void keep_frames(std::uint64_t start, std::uint64_t code_bytes, std::vector<std::byte> eh_frame);
  std::optional<std::uint32_t> file_number(std::string_view name);
  void forget_lines(std::uint64_t start, std::uint64_t size_bytes);

  Fd fd_;
  Spender* payer_;
  std::vector<std::byte> window_;  ///< buffered part of the file
  std::uint64_t window_at_ = 0;    ///< its place in the file
  std::uint64_t size_ = 0;         ///< of the file when last checked, at most the limit
  std::uint64_t position_ = 0;     ///< of the next record; 0: the header has not been read yet
  std::optional<Prefix> next_;     ///< prefix of that record, once the record is whole
  bool has_other_clock_ = false;
  bool is_damaged_ = false;  ///< the next record cannot be found
  bool is_cut_ = false;
  std::uint64_t bad_records_ = 0;

  JitMap map_;
  std::map<std::uint64_t, std::vector<Line>> lines_;  ///< by start of the code
  std::uint64_t lines_of_next_load_ = 0;              ///< start of the code
  std::vector<Line> next_lines_;
  std::size_t line_count_ = 0;  ///< in lines_
  struct Frames {
    std::uint64_t code_bytes;
    std::vector<std::byte> eh_frame;
  };
  std::map<std::uint64_t, Frames> frames_;  ///< by start of the code
  std::vector<std::byte> next_frames_;      ///< of the next load
  std::size_t frames_bytes_ = 0;            ///< in frames_
  std::vector<const std::string*> files_;
  std::unordered_map<std::string, std::uint32_t> file_numbers_;
  std::size_t files_bytes_ = 0;
};

}  // namespace pe::names
