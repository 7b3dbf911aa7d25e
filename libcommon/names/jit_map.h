// Reads symbols of code compiled at run time from a perf map: /tmp/perf-PID.map.
//
// A line is `start size name`.  Both numbers are hexadecimal, and the name ends
// with the line.  The program appends lines while it runs and may reuse
// addresses, so the later of two overlapping entries counts.
//
// The file is in a folder that everyone may write to, and its content is
// untrusted.  Only a regular file of the expected owner is read, never through a
// symbolic link, and sizes are limited.
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

#include "base/budget.h"
#include "base/fd.h"
#include "base/io/regular_file.h"

namespace pe::names {

struct JitSymbol {
  std::string_view name;  ///< as in the file; valid until the map gets another entry
  std::uint64_t start;    ///< avma
  std::uint64_t offset;   ///< of the address looked up
};

/// Receives a range of addresses [start, end) whose symbols have just changed.
using OnCodeChange = std::function<void(std::uint64_t, std::uint64_t)>;

/// The entries of a perf map or a jitdump.
class JitMap {
 public:
  /// Adds the entry in `line` (without newline).  If there is none, counts the line and returns
  /// false.
  bool add_line(std::string_view line);
  /// Does the same for a line that may be incomplete, but does not count it.
  bool add_unfinished_line(std::string_view line);
  /// From now on `spender` pays for what is kept.
  void pay_by(const Spender& spender) { kept_ = KeptBytes(spender); }
  /// Returns whether there is room for so many bytes more.
  bool may_keep(std::size_t bytes);
  /// Adds an entry; false if it is invalid or exceeds a limit.
  bool add(std::uint64_t start, std::uint64_t size_bytes, std::string_view name);
  /// Returns the addresses [start, end) of the last added entry, which must exist.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> newest() const noexcept {
    return {entries_.back().start, newest_end_};
  }
  /// Returns the newest entry that covers `avma`.
  [[nodiscard]] std::optional<JitSymbol> find(std::uint64_t avma) const;

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Returns the number of lines that were no entry or exceeded a limit.
  [[nodiscard]] std::uint64_t bad_lines() const noexcept { return bad_lines_; }
  void clear();

  static constexpr std::size_t kMaxLineBytes = 16 * 1024;
  static constexpr std::size_t kMaxEntries = 4U << 20;
  static constexpr std::size_t kMaxNamesBytes = 512U << 20;
  /// Limit of one function's code: a larger entry is treated as invalid, for it would hide others.
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
  std::map<std::uint64_t, Range> ranges_;  ///< the newest entry of each range; by begin, disjoint
  std::string names_;
  std::uint64_t newest_end_ = 0;  ///< of the last entry
  KeptBytes kept_;
  std::size_t room_ = 0;  ///< in kept_
  std::uint64_t bad_lines_ = 0;
};

/// Why a perf map or a jitdump could not be opened.
enum class JitMapFailure {
  kMissing,
  kPermission,
  kNotRegular,  ///< also: a symbolic link
  kWrongOwner,
  kUnreadable,
};

/// Opens a file that a JIT compiler has written.  It must belong to `owner` and must not be a link.
/// The path is below the root of the process `root_of`, unless that is 0.
std::variant<RegularFile, JitMapFailure> open_jit_file(const std::string& path, uid_t owner,
                                                       pid_t root_of);

/// A perf map file, kept open and read as it grows.
class JitMapFile {
 public:
  /// Opens and reads `path`, which must belong to `owner`, the user of the program it describes.
  /// `payer` pays for reading and for what is kept, and must outlive this; null: no limits.
  static std::variant<JitMapFile, JitMapFailure> open(const std::string& path, uid_t owner,
                                                      pid_t root_of = 0, Spender* payer = nullptr);

  /// Reads the lines appended since the last call; the whole file, if it has become shorter.
  /// Returns false if nothing changed, at the cost of one fstat(2).
  bool refresh(const OnCodeChange& on_change = [](std::uint64_t, std::uint64_t) {});

  [[nodiscard]] const JitMap& map() const noexcept { return map_; }
  [[nodiscard]] std::optional<JitSymbol> find(std::uint64_t avma) const { return map_.find(avma); }
  /// Whether the file exceeds kMaxFileBytes, so that its end was not read.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }

  static constexpr std::uint64_t kMaxFileBytes = 512U << 20;

 private:
  JitMapFile(Fd fd, Spender* payer) : fd_(std::move(fd)), payer_(payer) {
    if (payer != nullptr)
      map_.pay_by(*payer);
  }
  void read_to(std::uint64_t size_bytes, const OnCodeChange& on_change);
  void add_lines(std::string_view text, const OnCodeChange& on_change);

  Fd fd_;
  Spender* payer_;
  JitMap map_;
  std::uint64_t read_bytes_ = 0;  ///< number of bytes read from the file
  std::string line_;              ///< the last line, until its newline is read
  bool line_is_too_long_ = false;
  bool is_cut_ = false;
};

}  // namespace pe::names
