// Reads a code object of CPython: the function's name, its file and its lines.
//
// Sources: CPython, Include/cpython/code.h and unicodeobject.h; Objects/locations.md for the table
// of lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "runtimes/memory.h"
#include "runtimes/python_layout.h"
#include "runtimes/python_walk.h"

namespace pe::runtimes {

/// Reads a str object as UTF-8, at most `most` characters of it.  nullopt if it is unreadable, or
/// not compact, as only old extension modules make them.  U+FFFD replaces what UTF-8 cannot hold.
std::optional<std::string> read_python_text(Memory& memory, const PythonLayout& layout,
                                            std::uint64_t text, std::size_t most);

/// The line of each instruction.
class LineTable {
 public:
  LineTable() = default;
  /// Decodes co_linetable; stops at the first byte that does not belong there.
  LineTable(Bytes table, std::uint32_t first_line);

  /// Returns the line of the instruction at `offset` bytes; 0 if it has none.
  [[nodiscard]] std::uint32_t line_at(std::uint64_t offset) const noexcept;

 private:
  struct Entry {
    std::uint32_t end;   ///< offset of the instructions that follow
    std::uint32_t line;  ///< 0: none
  };
  std::vector<Entry> entries_;
};
/// Reads the table of lines of a code object; an empty one if it is unreadable.
LineTable read_line_table(Memory& memory, const PythonLayout& layout, const CodeFields& code);

}  // namespace pe::runtimes
