// SPDX-License-Identifier: MIT
#include "languages/java/names.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"

namespace pe::languages {
namespace {

constexpr std::size_t kMostSymbolBytes = 2000;
constexpr std::size_t kMostLinesBytes = 65'536, kMostLines = 16'384;

/// Returns the text of a Symbol; U+FFFD replaces what UTF-8 cannot hold.
std::optional<std::string> read_symbol(Memory& memory, const HotspotLayout& layout,
                                       std::uint64_t symbol) {
  const auto length = memory.value<std::uint16_t>(symbol + layout.symbol_length);
  if (symbol == 0 || !length || *length == 0)
    return std::nullopt;
  std::string text(std::min<std::size_t>(*length, kMostSymbolBytes), '\0');
  if (!memory.read(symbol + layout.symbol_body, std::as_writable_bytes(std::span(text))))
    return std::nullopt;
  return made_valid_utf8(text);
}

/// Returns the avma of the pool's symbol with that number; 0 if there is none.
std::uint64_t symbol_of(Memory& memory, const HotspotLayout& layout, std::uint64_t pool,
                        std::uint32_t number) {
  const auto length = memory.value<std::uint32_t>(pool + layout.pool_length);
  if (number == 0 || !length || number >= *length)
    return 0;
  return memory.pointer(pool + layout.pool_bytes + std::uint64_t{number} * sizeof(std::uint64_t))
      .value_or(0);
}

/// A class without a name of its own has its address in its name, "Main$$Lambda$1+0x..." or
/// "/0x...": different in each run, so it is left out.
void drop_address(std::string& klass) {
  for (const char* const mark : {"+0x", "/0x"})
    if (const auto at = klass.find(mark); at != std::string::npos)
      klass.resize(at);
}

void read_lines(Memory& memory, const HotspotLayout& layout, const MethodFields& fields,
                JavaMethod& method) {
  const auto words = memory.value<std::uint32_t>(fields.constant + layout.const_words);
  const auto flags = memory.value<std::uint16_t>(fields.constant + layout.const_flags);
  const std::uint64_t from = layout.const_bytes + fields.bytecodes;
  if (!words || !flags || (*flags & layout.has_lines_bit) == 0 ||
      std::uint64_t{*words} * sizeof(std::uint64_t) <= from)
    return;
  std::vector<std::byte> table(std::min<std::uint64_t>(
      std::uint64_t{*words} * sizeof(std::uint64_t) - from, kMostLinesBytes));
  if (!memory.read(fields.constant + from, table))
    return;
  constexpr std::uint8_t kEscape = 0xff;
  constexpr unsigned kLineBits = 3;
  CompressedReader reader(table, layout.compressed_excess);
  std::uint32_t bytecode = 0, line = 0;
  while (method.lines.size() < kMostLines) {
    const auto byte = reader.byte();
    if (!byte || *byte == 0)
      break;
    if (*byte == kEscape) {
      const auto bytecodes = reader.signed_number();
      const auto lines = reader.signed_number();
      if (!bytecodes || !lines)
        break;
      bytecode += static_cast<std::uint32_t>(*bytecodes);
      line += static_cast<std::uint32_t>(*lines);
    } else {
      bytecode += *byte >> kLineBits;
      line += *byte & ((1U << kLineBits) - 1);
    }
    if (bytecode >= fields.bytecodes)
      break;
    method.lines.push_back({bytecode, line});
  }
  std::ranges::stable_sort(method.lines, {}, &JavaMethod::Line::bytecode);
  const auto first = std::ranges::min_element(method.lines, {}, &JavaMethod::Line::line);
  method.first_line = first != method.lines.end() ? first->line : 0;
}

}  // namespace

std::optional<std::uint32_t> CompressedReader::number() {
  constexpr std::uint32_t kLowest = 192;  // of the bytes that continue a number
  constexpr unsigned kBits = 6, kMostBytes = 5;
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < kMostBytes; ++i) {
    const auto byte = reader_.take<std::uint8_t>();
    if (!byte || *byte < excess_)
      return std::nullopt;
    sum += (*byte - excess_) << kBits * i;
    if (*byte < kLowest)
      break;
  }
  return sum;
}

std::optional<std::int32_t> CompressedReader::signed_number() {
  const auto coded = number();
  return coded ? std::optional(static_cast<std::int32_t>((*coded >> 1U) ^ (0U - (*coded & 1U))))
               : std::nullopt;
}

std::optional<MethodFields> read_method_fields(Memory& memory, const HotspotLayout& layout,
                                               std::uint64_t method) {
  if (method == 0)
    return std::nullopt;
  const auto constant = memory.pointer(method + layout.method_const);
  if (!constant || *constant == 0)
    return std::nullopt;
  const auto pool = memory.pointer(*constant + layout.const_pool);
  const auto bytecodes = memory.value<std::uint16_t>(*constant + layout.const_code_size);
  const auto name = memory.value<std::uint16_t>(*constant + layout.const_name);
  if (!pool || *pool == 0 || !bytecodes || !name)
    return std::nullopt;
  const auto klass = memory.pointer(*pool + layout.pool_holder);
  const std::uint64_t symbol = symbol_of(memory, layout, *pool, *name);
  if (!klass || *klass == 0 || symbol == 0)
    return std::nullopt;
  return MethodFields{*constant, *pool, symbol, *klass, *bytecodes};
}

std::uint32_t JavaMethod::line_at(std::uint32_t bytecode) const noexcept {
  const auto after = std::ranges::upper_bound(lines, bytecode, {}, &Line::bytecode);
  return after == lines.begin() ? first_line : (after - 1)->line;
}

std::optional<JavaMethod> read_java_method(Memory& memory, const HotspotLayout& layout,
                                           const MethodFields& fields) {
  const auto name = read_symbol(memory, layout, fields.name);
  auto klass =
      read_symbol(memory, layout, memory.pointer(fields.klass + layout.klass_name).value_or(0));
  if (!name || !klass)
    return std::nullopt;
  JavaMethod method;
  const auto file_number = memory.value<std::uint16_t>(fields.pool + layout.pool_file);
  const auto file = file_number ? read_symbol(memory, layout,
                                              symbol_of(memory, layout, fields.pool, *file_number))
                                : std::nullopt;
  if (file) {
    const auto slash = klass->rfind('/');
    method.file = slash == std::string::npos ? *file : klass->substr(0, slash + 1) + *file;
  }
  drop_address(*klass);
  std::ranges::replace(*klass, '/', '.');
  method.name = *klass + '.' + *name;
  read_lines(memory, layout, fields, method);
  return method;
}

}  // namespace pe::languages
