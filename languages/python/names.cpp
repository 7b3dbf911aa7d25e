// SPDX-License-Identifier: MIT
#include "languages/python/names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>

#include "base/utf8.h"
#include "languages/python/objects.h"

namespace pe::languages {
namespace {

template <typename Unit>
std::string utf8_of(Bytes units) {
  std::string text;
  ByteReader reader(units);
  while (const auto unit = reader.take<Unit>())
    append_utf8(text, *unit);
  return text;
}

/// Reads the entries of a table of lines: Objects/locations.md of CPython.
class LineReader {
 public:
  explicit LineReader(Bytes table) : reader_(table) {}

  struct Step {
    std::uint32_t bytes;  ///< of instructions
    std::int64_t line_delta;
    bool has_line;
  };
  std::optional<Step> take() {
    constexpr unsigned kFirst = 0x80, kLengthMask = 7, kCodeShift = 3, kCodeMask = 15;
    constexpr unsigned kOneLine = 10, kNoColumns = 13, kLong = 14, kNone = 15;
    constexpr std::uint32_t kUnitBytes = 2;
    const auto head = reader_.take<std::uint8_t>();
    if (!head || (*head & kFirst) == 0)
      return std::nullopt;
    const unsigned code = *head >> kCodeShift & kCodeMask;
    Step step{((*head & kLengthMask) + 1U) * kUnitBytes, 0, code != kNone};
    if (code == kNoColumns || code == kLong)
      step.line_delta = signed_number();
    else if (code >= kOneLine && code < kNoColumns)
      step.line_delta = code - kOneLine;
    skip_columns();
    return step;
  }

 private:
  /// Reads groups of six bits, the lowest first; the lowest bit of all is the sign.
  std::int64_t signed_number() {
    constexpr unsigned kMore = 0x40, kBits = 6, kMask = 0x3f, kMostShift = 30;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift <= kMostShift; shift += kBits) {
      const auto byte = reader_.take<std::uint8_t>();
      if (!byte)
        break;
      value |= std::uint64_t{*byte & kMask} << shift;
      if ((*byte & kMore) == 0)
        break;
    }
    const auto amount = static_cast<std::int64_t>(value >> 1U);
    return (value & 1U) != 0 ? -amount : amount;
  }
  /// Only the first byte of an entry has its highest bit set.
  void skip_columns() {
    while (!reader_.empty() && (std::to_integer<unsigned>(reader_.left().front()) & 0x80U) == 0)
      reader_.skip(1);
  }

  ByteReader reader_;
};

/// Returns the fields of a code object that exists and has the frame's mark.
///
/// A freed object's first word, where its count of references was, is null or the address of
/// another free block; programs start at 4 MiB at the lowest.  Immortal objects have a count of
/// 999,999,999 (3.11), and later one with the sign bit of its lower half (Include/object.h).
std::optional<CodeFields> live_fields(Memory& memory, const PythonLayout& layout,
                                      const ScriptFrame& frame) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 22U, kImmortal = 999'999'999;
  constexpr std::uint64_t kSign = std::uint64_t{1} << 31U, kOverflow = 0xffff;
  const auto count = memory.value<std::uint64_t>(frame.code);
  const std::uint64_t low = count.value_or(0) & 0xffff'ffffU;
  const bool is_count =
      low != 0 && (low < kMost || low + kMost - kImmortal < 2 * kMost || low >= kSign);
  if (!is_count || (*count >> 32U & kOverflow) != 0)
    return std::nullopt;
  const auto fields = read_code_fields(memory, layout, frame.code);
  return fields && code_mark(*fields) == frame.mark ? fields : std::nullopt;
}

}  // namespace

std::optional<std::string> read_python_text(Memory& memory, const PythonLayout& layout,
                                            std::uint64_t text, std::size_t most) {
  const auto found = find_python_text(memory, layout, text, most);
  std::vector<std::byte> units(found ? found->bytes : 0);
  if (!found || !memory.read(found->avma, units))
    return std::nullopt;
  if (found->unit_bytes == 1)
    return utf8_of<std::uint8_t>(units);
  return found->unit_bytes == 2 ? utf8_of<std::uint16_t>(units) : utf8_of<std::uint32_t>(units);
}

LineTable decode_lines(Bytes table, std::uint32_t first_line, std::uint32_t instructions) {
  LineTable lines;
  LineReader reader(table);
  std::uint64_t end = instructions;
  std::int64_t line = first_line;
  lines.add(end, 0);
  while (const auto step = reader.take()) {
    constexpr std::int64_t kMostLine = std::numeric_limits<std::int32_t>::max();
    end += step->bytes;
    line = std::clamp<std::int64_t>(line + step->line_delta, 0, kMostLine);
    if (!lines.add(end, step->has_line ? line : 0))
      break;
  }
  return lines;
}

LineTable read_line_table(Memory& memory, const PythonLayout& layout, const CodeFields& code) {
  const auto found = find_line_table(memory, layout, code);
  std::vector<std::byte> table(found ? found->bytes : 0);
  if (!found || !memory.read(found->avma, table))
    return {};
  return decode_lines(table, code.first_line, layout.instructions);
}

std::optional<ScriptCode> read_python_code(Memory& memory, const ScriptLayout& layout,
                                           const ScriptFrame& frame) {
  const PythonLayout& python = layout.python;
  const auto fields = live_fields(memory, python, frame);
  if (!fields)
    return std::nullopt;
  auto name = read_python_text(memory, python, fields->name, kMostNameCharacters);
  auto lines = read_line_table(memory, python, *fields);
  auto file = read_python_text(memory, python, fields->file, kMostFileCharacters).value_or("");
  memory.forget();
  // Freed meanwhile, and perhaps replaced by an object with the same fields.
  if (!name || !live_fields(memory, python, frame) ||
      read_python_text(memory, python, fields->name, kMostNameCharacters) != name)
    return std::nullopt;
  // From 3.13 on, the loop adds a frame to clean up after a constructor (_Py_InitCleanup,
  // Python/specialize.c).
  const bool is_cleanup = fields->first_line == 0 && file == "__init__" && *name == file;
  return ScriptCode{
      .function = {.name = *std::move(name), .file = std::move(file), .line = fields->first_line},
      .lines = std::move(lines),
      .is_hidden = is_cleanup};
}

}  // namespace pe::languages
