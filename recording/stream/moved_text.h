// Recognises text that a program has moved into anonymous memory, so that it has huge pages: node
// --use-largepages, PHP's opcache.huge_code_pages, BOLT's --hugify, Intel's iodlr.
//
// They replace a part of their text by anonymous memory at the same addresses and copy the text
// there.  So code in anonymous memory between two mappings of one file is that file's, if
//  - the file loads code there, by its program headers and by both mappings, and
//  - the memory has the file's bytes.  Up to 16 pages of it are compared, of which an eighth of the
//    bytes may differ: breakpoints, and functions that were patched.  Memory that cannot be read is
//    not compared, and pages of zeros are not copied yet.
//
// V8 maps its built-in code a second time, near the code that it compiles.  Of text that has moved
// it makes a copy, also in anonymous memory.  That is recognised by its size and by its bytes.
//
// All of this is a hint, not a proof: a process that lies gets wrong names for its own code.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "objects/image.h"
#include "stream/proc/maps_line.h"
#include "stream/proc/process_table.h"
#include "stream/records/sample.h"

namespace pe::recording {

/// What is in anonymous code between two mappings of one file.
enum class HoleCode {
  kUnknown,  ///< the file cannot be opened, nobody may pay, or nothing has been copied yet
  kText,     ///< the file's text
  kOther,    ///< other code
};

/// Code in anonymous memory between two mappings.
struct Hole {
  std::uint64_t start = 0, end = 0;    ///< avma
  stream::MapsLine before, behind;     ///< of one file; need not be executable
  std::uint64_t text_file_offset = 0;  ///< if it is text: the place of `start` in the file
};

/// Returns where the file has the text that it loads into the hole; nullopt if it loads none.
std::optional<std::uint64_t> offset_of_text(std::span<const objects::Segment> segments,
                                            const Hole& hole);

/// Text of a process that has moved, and V8's code in its file.
struct MovedFile {
  std::uint64_t start = 0, end = 0;    ///< of the hole
  std::uint64_t text_file_offset = 0;  ///< of `start`
  stream::MapsLine file;               ///< the line before the hole, without its path
  std::string path;                    ///< as in that line
  std::uint64_t copied_bytes = 0;      ///< whole pages of a copy of V8's code; 0: there is none
  std::uint64_t copied_file_offset = 0;
  std::uint64_t copy = 0;  ///< avma of the copy that was compared last
};

/// One thread at a time may use it.
class MovedText {
 public:
  /// Copies memory of a process; returns the number of bytes, 0 if it is unreadable.
  using ReadMemory =
      std::function<std::size_t(std::uint32_t pid, std::uint64_t avma, std::span<std::byte> into)>;
  /// Processes pay for what is read of them from `budget`, which must outlive this.
  MovedText(Budget& budget, ReadMemory read) : budget_(budget), read_(std::move(read)) {}

  /// Examines a hole; sets its `text_file_offset` for kText.
  HoleCode examine(pid_t pid, Hole& hole);

  /// Returns what the anonymous code has that a process has just mapped over a part of a file, by
  /// what /proc reports now; kUnknown if it is not over one file, or gone.  `known` has the
  /// mappings before.
  HoleCode examine(const stream::MmapRecord& map, const stream::AddressSpace& known);

  /// Returns the text that has moved, and of whose file the anonymous code in [start, end) is the
  /// second copy; null if it is none.  Valid until the next call.
  const MovedFile* copy_at(pid_t pid, std::uint64_t start, std::uint64_t end);

 private:
  void remember(pid_t pid, const objects::Image& image, const Hole& hole);
  HoleCode compare(pid_t pid, const objects::Image& image, std::uint64_t file_offset,
                   std::uint64_t start, std::uint64_t end) const;

  Budget& budget_;
  ReadMemory read_;
  std::unordered_map<pid_t, MovedFile> moved_;  ///< the last text of each process
};

/// Accepts the lines of a /proc/PID/maps in order and passes them on: a hole with text as a mapping
/// of the file, one with other code as a mapping with the path stream::kNoMovedText.
class LinesWithText {
 public:
  /// `code` says of anonymous code what it is; kOther also if it is in no hole.
  using OnLine = std::function<void(const stream::MapsLine& line, HoleCode code)>;
  /// The lines' paths must live until finish().  `text`, which may be null, and `on_line` must
  /// outlive this.
  LinesWithText(MovedText* text, pid_t pid, const OnLine& on_line)
      : text_(text), pid_(pid), on_line_(on_line) {}

  void take(const stream::MapsLine& line);
  void finish() { pass_hole(nullptr); }

 private:
  void pass_hole(const stream::MapsLine* behind);

  MovedText* text_;  ///< null: holes are passed on as they are
  pid_t pid_;
  const OnLine& on_line_;
  std::optional<stream::MapsLine> before_;  ///< the last line that is not in a hole
  std::vector<stream::MapsLine> hole_;      ///< adjacent lines of anonymous code
};

}  // namespace pe::recording
