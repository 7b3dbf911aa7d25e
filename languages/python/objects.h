// Where objects of CPython keep their contents: strings, and the tables of lines.  Allocates
// nothing, so the process itself can use it.
//
// Sources: CPython, Include/cpython/unicodeobject.h and bytesobject.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "languages/common/frame.h"
#include "languages/python/layout.h"
#include "languages/python/walk.h"

namespace pe::languages {

/// The contents of an object.
struct PythonContents {
  std::uint64_t avma, bytes;
  std::uint32_t unit_bytes;  ///< of a character; 1 for bytes
};

/// Finds the characters of a str object, at most `most` of them.  nullopt if the object is
/// unreadable, or not compact, as only old extension modules make them.
template <typename M>
std::optional<PythonContents> find_python_text(M& memory, const PythonLayout& layout,
                                               std::uint64_t text, std::size_t most) {
  constexpr std::uint32_t kKindShift = 2, kKindMask = 7, kIsCompact = 0x20, kIsAscii = 0x40;
  const auto length = number_at<std::uint64_t>(memory, text + layout.text_length);
  const auto state = number_at<std::uint32_t>(memory, text + layout.text_state);
  const std::uint32_t unit_bytes = state >> kKindShift & kKindMask;
  if ((state & kIsCompact) == 0 || (unit_bytes != 1 && unit_bytes != 2 && unit_bytes != 4))
    return std::nullopt;
  const bool is_ascii = (state & kIsAscii) != 0;
  return PythonContents{text + (is_ascii ? layout.ascii_data : layout.wide_data),
                        std::min<std::uint64_t>(length, most) * unit_bytes, unit_bytes};
}

/// Finds the table of lines of a code object; nullopt if it is unreadable or too long.
template <typename M>
std::optional<PythonContents> find_line_table(M& memory, const PythonLayout& layout,
                                              const CodeFields& code) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20U;
  const auto size = number_at<std::uint64_t>(memory, code.line_table + layout.bytes_size);
  if (size == 0 || size > kMostBytes)
    return std::nullopt;
  return PythonContents{code.line_table + layout.bytes_data, size, 1};
}

/// Calls `on_piece(avma, bytes)` for each piece of memory from which read_python_code() names a
/// code object.  Returns false if the object is unreadable, or no longer has the frame's mark.
template <typename M, typename OnPiece>
bool for_each_piece_of_code(M& memory, const PythonLayout& layout, const ScriptFrame& frame,
                            OnPiece on_piece) {
  constexpr std::uint64_t kWord = kPythonWordBytes;
  const auto fields = read_code_fields(memory, layout, frame.code);
  if (!fields || code_mark(*fields) != frame.mark)
    return false;
  const std::uint64_t last =
      std::max({layout.file, layout.name, layout.line_table, layout.first_line});
  on_piece(frame.code, last + kWord);
  // The hash of co_name is a part of the mark.
  const std::uint64_t short_name =
      pointer_at(memory, frame.code + layout.name - (layout.name >= kWord ? kWord : 0));
  on_piece(short_name + layout.text_length, 2 * kWord);
  const auto add = [&](std::uint64_t object, const std::optional<PythonContents>& contents) {
    if (contents)
      on_piece(object, contents->avma + contents->bytes - object);
  };
  add(fields->name, find_python_text(memory, layout, fields->name, kMostNameCharacters));
  add(fields->file, find_python_text(memory, layout, fields->file, kMostFileCharacters));
  add(fields->line_table, find_line_table(memory, layout, *fields));
  return true;
}

}  // namespace pe::languages
