// Names of compiled-at-run-time code, from a perf map: /tmp/perf-PID.map.
//
// A line is `start size name`, both numbers in hexadecimal, the name up to the
// end of the line.  The program appends while it runs; addresses are used
// again, so of two entries that overlap the later one counts.
//
// The file is in a folder that everyone may write to, and its content is
// whatever the program likes: only a regular file of the expected owner is
// read, never through a symbolic link, and sizes are limited.
//
// Source: tools/perf/Documentation/jit-interface.txt.
// Cost: 1,000,000 entries 0.6 s in the order of their addresses, 2.4 s at random ones.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/fd.h"
#include "base/io/regular_file.h"

namespace pe::names {

struct JitSymbol {
  std::string_view name;  ///< as in the file; dies when the map is added to
  std::uint64_t start;    ///< avma
  std::uint64_t offset;   ///< of the address looked up
};

/// Hears of addresses [start, end) that are called something else from now on.
using OnCodeChange = std::function<void(std::uint64_t, std::uint64_t)>;

/// The entries of a perf map, whatever they were read from.
class JitMap {
 public:
  /// Adds the entry in `line` (without newline); false and counted if there is none.
  bool add_line(std::string_view line);
  /// The same for a line that may not be complete yet: nothing is counted.
  bool add_unfinished_line(std::string_view line);
  /// Adds an entry; false if it makes no sense or is one too many.
  bool add(std::uint64_t start, std::uint64_t size_bytes, std::string_view name);
  /// The addresses [start, end) of the entry added last; there must be one.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> newest() const noexcept {
    return {entries_.back().start, newest_end_};
  }
  /// The newest entry that covers `avma`.
  [[nodiscard]] std::optional<JitSymbol> find(std::uint64_t avma) const;

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Lines that were no entry, or were one too many.
  [[nodiscard]] std::uint64_t bad_lines() const noexcept { return bad_lines_; }
  void clear();

  static constexpr std::size_t kMaxLineBytes = 16 * 1024;
  static constexpr std::size_t kMaxEntries = 4U << 20;
  static constexpr std::size_t kMaxNamesBytes = 512U << 20;
  /// One function's code: larger ones are taken for nonsense that would hide the others.
  static constexpr std::uint64_t kMaxEntryBytes = 1U << 30;

 private:
  struct Entry {
    std::uint64_t start;
    std::uint32_t name, name_bytes;  ///< place in names_
  };
  struct Range {
    std::uint64_t end;
    std::uint32_t entry;
  };

  void cover(std::uint64_t begin, std::uint64_t end, std::uint32_t entry);

  std::vector<Entry> entries_;             ///< in the order of their lines
  std::map<std::uint64_t, Range> ranges_;  ///< by begin, disjoint: what is newest where
  std::string names_;
  std::uint64_t newest_end_ = 0;  ///< of the last entry
  std::uint64_t bad_lines_ = 0;
};

/// Why a perf map could not be had.
enum class JitMapFailure {
  kMissing,
  kPermission,
  kNotRegular,  ///< also: a symbolic link
  kWrongOwner,
  kUnreadable,
};

/// Opens what a JIT compiler has written, which must be a file of `owner`'s, and no link; below the
/// root of the process `root_of`, unless that is 0.
std::variant<RegularFile, JitMapFailure> open_jit_file(const std::string& path, uid_t owner,
                                                       pid_t root_of);

/// A perf map file, kept open and read as it grows.
class JitMapFile {
 public:
  /// Opens and reads `path`, which must belong to `owner`, the user of the program it describes.
  static std::variant<JitMapFile, JitMapFailure> open(const std::string& path, uid_t owner,
                                                      pid_t root_of = 0);

  /// Reads what was appended since; all of it, if the file has become shorter.
  /// True if there was anything.  Costs one fstat(2) if not.
  bool refresh(const OnCodeChange& on_change = [](std::uint64_t, std::uint64_t) {});

  [[nodiscard]] const JitMap& map() const noexcept { return map_; }
  [[nodiscard]] std::optional<JitSymbol> find(std::uint64_t avma) const { return map_.find(avma); }
  /// Whether the file exceeds kMaxFileBytes, so that its end was not read.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }

  static constexpr std::uint64_t kMaxFileBytes = 512U << 20;

 private:
  explicit JitMapFile(Fd fd) : fd_(std::move(fd)) {}
  void read_to(std::uint64_t size_bytes, const OnCodeChange& on_change);
  void add_lines(std::string_view text, const OnCodeChange& on_change);

  Fd fd_;
  JitMap map_;
  std::uint64_t read_bytes_ = 0;  ///< so much of the file has been looked at
  std::string line_;              ///< the last line, as long as it has no newline
  bool line_is_too_long_ = false;
  bool is_cut_ = false;
};

}  // namespace pe::names
