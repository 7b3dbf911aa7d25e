// SPDX-License-Identifier: MIT
#include "languages/ruby/names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/utf8.h"

namespace pe::languages {
namespace {

constexpr std::uint64_t kTypeMask = 0x1f, kString = 5, kArray = 7;  // RUBY_T_...
constexpr std::uint64_t kInsideOfArray = 0x2000;                    // RARRAY_EMBED_FLAG
constexpr std::uint64_t kOutsideOfString = 0x2000;                  // RSTRING_NOEMBED

/// A succ_index_table starts with nine numbers of seven bits in each of six words, for the first
/// positions.  Then come blocks of 512 positions: the number of starts before, the numbers of
/// starts before each group of 64, and a bit for each position.
constexpr std::uint32_t kPerWord = 9, kImmediate = 54, kBlock = 512, kGroup = 64;
constexpr std::size_t kBlockBytes = 80, kBitsInBlock = 16;

std::size_t bytes_of_starts(std::uint32_t size) {
  if (size < kImmediate)
    return (size + kPerWord - 1) / kPerWord * sizeof(std::uint64_t);
  const std::size_t blocks = (size - kImmediate + kBlock - 1) / kBlock;
  return kImmediate / kPerWord * sizeof(std::uint64_t) + blocks * kBlockBytes;
}

std::uint64_t word_at(Bytes bytes, std::size_t at) {
  std::uint64_t word = 0;
  if (at + sizeof word <= bytes.size())
    std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

bool is_start(Bytes table, std::uint32_t position, std::uint32_t starts_before) {
  constexpr unsigned kRankBits = 7, kRankMask = 0x7f;
  if (position < kImmediate) {
    const std::uint64_t word = word_at(table, position / kPerWord * sizeof(std::uint64_t));
    return (word >> position % kPerWord * kRankBits & kRankMask) > starts_before;
  }
  const std::uint32_t in_blocks = position - kImmediate;
  const std::size_t block = bytes_of_starts(kImmediate) + in_blocks / kBlock * kBlockBytes;
  const std::uint64_t bits =
      word_at(table, block + kBitsInBlock + in_blocks % kBlock / kGroup * sizeof(std::uint64_t));
  return (bits >> in_blocks % kGroup & 1U) != 0;
}

std::vector<std::byte> read_bytes(Memory& memory, std::uint64_t avma, std::size_t size) {
  std::vector<std::byte> bytes(size);
  return memory.read(avma, bytes) ? bytes : std::vector<std::byte>();
}

}  // namespace

std::optional<std::string> read_ruby_text(Memory& memory, const RubyLayout& layout,
                                          std::uint64_t text, std::size_t most) {
  constexpr std::uint32_t kLength = 16, kPointer = 24, kInside = 16;
  constexpr std::uint64_t kLengthShift = 14, kLengthMask = 0x1f;  // RSTRING_EMBED_LEN_MASK
  const auto flags = memory.value<std::uint64_t>(text);
  if (!flags || (*flags & kTypeMask) != kString)
    return std::nullopt;
  const bool is_outside = (*flags & kOutsideOfString) != 0;
  std::uint64_t length = *flags >> kLengthShift & kLengthMask;
  if (is_outside || layout.has_length != 0)
    length = memory.value<std::uint64_t>(text + kLength).value_or(0);
  std::uint64_t data = text + (layout.has_length != 0 ? kPointer : kInside);
  if (is_outside)
    data = memory.pointer(text + kPointer).value_or(0);
  std::string bytes(std::min<std::uint64_t>(length, most), '\0');
  if (!memory.read(data, std::as_writable_bytes(std::span(bytes))))
    return std::nullopt;
  return made_valid_utf8(bytes);
}

std::optional<std::string> read_ruby_path(Memory& memory, const RubyLayout& layout,
                                          std::uint64_t path, std::size_t most) {
  constexpr std::uint32_t kInside = 16, kPointer = 32;
  const auto flags = memory.value<std::uint64_t>(path);
  if (!flags || (*flags & kTypeMask) != kArray)
    return read_ruby_text(memory, layout, path, most);
  const auto items = (*flags & kInsideOfArray) != 0 ? std::optional(path + kInside)
                                                    : memory.pointer(path + kPointer);
  const auto first = items ? memory.pointer(*items) : std::nullopt;
  return first ? read_ruby_text(memory, layout, *first, most) : std::nullopt;
}

std::vector<std::uint32_t> ruby_line_starts(Bytes table, std::uint32_t size, std::uint32_t count) {
  std::vector<std::uint32_t> starts;
  for (std::uint32_t position = 0; position < size && starts.size() < count; ++position)
    if (is_start(table, position, static_cast<std::uint32_t>(starts.size())))
      starts.push_back(position);
  return starts;
}

LineTable ruby_lines(std::span<const std::uint32_t> starts, std::span<const std::uint32_t> lines,
                     std::uint32_t size) {
  constexpr std::uint64_t kWordBytes = 8;
  LineTable table;
  const std::size_t count = std::min(starts.size(), lines.size());
  for (std::size_t i = 0; i < count; ++i) {
    // While an instruction is executed, the place is that of the next one.
    const std::uint64_t end = i + 1 < count ? starts[i + 1] : size;
    if (!table.add((end + 1) * kWordBytes, lines[i]))
      break;
  }
  return table;
}

LineTable read_ruby_lines(Memory& memory, const RubyLayout& layout, std::uint64_t body,
                          const RubyCodeFields& fields) {
  constexpr std::uint32_t kMostWords = 1U << 20U;
  struct Info {
    std::uint64_t entries, positions;
    std::uint32_t count, unused;
    std::uint64_t starts;
  };
  const auto info = memory.value<Info>(body + layout.lines);
  if (!info || info->count > fields.size || fields.size > kMostWords)
    return {};
  const std::vector<std::byte> entries =
      read_bytes(memory, info->entries, std::size_t{info->count} * layout.line_bytes);
  ByteReader reader(entries);
  std::vector<std::uint32_t> lines;
  while (const auto line = reader.take<std::uint32_t>()) {
    lines.push_back(*line);
    reader.skip(layout.line_bytes - sizeof *line);
  }
  if (lines.size() == 1)  // it has no table
    return ruby_lines(std::array{0U}, lines, fields.size);
  const std::vector<std::byte> table =
      read_bytes(memory, info->starts, bytes_of_starts(fields.size));
  return ruby_lines(ruby_line_starts(table, fields.size, info->count), lines, fields.size);
}

std::optional<ScriptCode> read_ruby_code(Memory& memory, const ScriptLayout& layout,
                                         const ScriptFrame& frame) {
  const RubyLayout& ruby = layout.ruby;
  const auto fields = read_ruby_fields(memory, ruby, frame.code);
  if (!fields || fields->mark() != frame.mark)
    return std::nullopt;
  auto name = read_ruby_text(memory, ruby, fields->label, kMostNameCharacters);
  if (!name)
    return std::nullopt;
  auto file = read_ruby_path(memory, ruby, fields->path, kMostFileCharacters);
  return ScriptCode{.function = {.name = *std::move(name),
                                 .file = std::move(file).value_or(""),
                                 .line = std::max(fields->first_line, 1U),  // 0: of a file
                                 .kind = stream::ScriptKind::kRuby},
                    .lines = read_ruby_lines(memory, ruby, frame.code, *fields)};
}

}  // namespace pe::languages
