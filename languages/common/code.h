// A function of a script: its name, its file and its lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "stream/script_mapping.h"

namespace pe::languages {

/// The line of each place in a function.
class LineTable {
 public:
  /// Adds the places from the last added one to `end`; line 0: they have none.  Returns false if
  /// `end` is too large.
  bool add(std::uint64_t end, std::int64_t line);

  /// Returns the line of a place; 0 if it has none.
  [[nodiscard]] std::uint32_t line_at(std::uint64_t place) const noexcept;
  /// Returns its size in memory.
  [[nodiscard]] std::size_t bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }
  /// Gives back memory that it does not use.
  void shrink() { entries_.shrink_to_fit(); }

 private:
  struct Entry {
    std::uint32_t end;   ///< the first place after it
    std::uint32_t line;  ///< 0: none
  };
  std::vector<Entry> entries_;
};

struct ScriptCode {
  stream::ScriptFunction function;
  LineTable lines;               ///< by ScriptFrame::place
  bool has_line_places = false;  ///< a frame's place is its line, and `lines` is empty
  bool is_hidden = false;        ///< no function of the script: its frames are not shown
};

/// Longer names and files are cut.
inline constexpr std::size_t kMostNameCharacters = 1000, kMostFileCharacters = 2000;

}  // namespace pe::languages
