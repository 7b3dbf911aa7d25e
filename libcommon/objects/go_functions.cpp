// SPDX-License-Identifier: MIT
#include "objects/go_functions.h"

#include <algorithm>
#include <string_view>

namespace pe::objects {
namespace {

/// By how the program is linked: without and with relocations.
constexpr std::string_view kTables[] = {".gopclntab", ".data.rel.ro.gopclntab"};

constexpr std::uint32_t kMagic118 = 0xfffffff0, kMagic120 = 0xfffffff1;
constexpr std::uint64_t kTextStartOffset = 24;  ///< of the field in the header
constexpr std::size_t kEntryBytes = 8;          ///< of an entry in the list of functions

struct Description {
  std::uint32_t code, name, arguments, deferred, stack_pointer, file, line, pair_count,
      compile_unit;
};

/// Returns the bytes from `offset` on; empty if that is outside.
Bytes from(Bytes bytes, std::uint64_t offset) {
  return offset < bytes.size() ? bytes.subspan(static_cast<std::size_t>(offset)) : Bytes();
}

/// For a program that can be loaded anywhere, a relocation's addend gives the place of the code.
std::optional<std::uint64_t> relocated_word(const Image& image, std::uint64_t svma) {
  struct Relocation {
    std::uint64_t svma, info;
    std::int64_t addend;
  };
  const auto section = image.section_bytes(".rela.dyn");
  ByteReader reader(section ? Bytes(section->bytes) : Bytes());
  while (const auto relocation = reader.take<Relocation>())
    if (relocation->svma == svma)
      return static_cast<std::uint64_t>(relocation->addend);
  return std::nullopt;
}

}  // namespace

GoFunctions::GoFunctions(Bytes table, std::uint64_t text_svma)
    : bytes_(table), text_svma_(text_svma) {
  ByteReader reader(table);
  const auto header = reader.take<Header>();
  if (!header || (header->magic != kMagic118 && header->magic != kMagic120) ||
      header->zeros[0] != 0 || header->zeros[1] != 0 || header->pointer_bytes != 8 ||
      header->code_unit != 1)
    return;
  header_ = *header;
  if (header_.text_start != 0)
    text_svma_ = header_.text_start;
  constexpr std::uint64_t kMostText = std::uint64_t{1} << 62;  // so that sums do not overflow
  if (text_svma_ > kMostText)
    return;
  list_ = from(table, header_.function_list);
  // One more word follows the entries: the end of the last function.
  const std::uint64_t most = list_.size() / kEntryBytes;
  count_ = header_.functions < most ? static_cast<std::size_t>(header_.functions) : 0;
}

std::optional<GoFunction> GoFunctions::function(std::size_t number) const {
  constexpr std::size_t kMostName = 4096;
  const std::uint32_t start = word(number * kEntryBytes);
  const std::uint32_t end = word((number + 1) * kEntryBytes);
  const std::uint32_t offset = word(number * kEntryBytes + sizeof start);
  ByteReader reader(from(list_, offset));
  const auto description = reader.take<Description>();
  const bool has_line = header_.magic == kMagic120;
  constexpr std::size_t kId = 1;
  if (end <= start || !description || !reader.skip((has_line ? sizeof(std::uint32_t) : 0) + kId))
    return std::nullopt;
  const auto flags = reader.take<std::uint8_t>();
  if (!flags)
    return std::nullopt;
  const Bytes names = from(from(bytes_, header_.names), description->name);
  ByteReader name(names.first(std::min(names.size(), kMostName)));
  return GoFunction{.start_svma = text_svma_ + start,
                    .bytes = end - start,
                    .name = name.take_string().value_or(std::string_view()),
                    .flags = *flags,
                    .pairs = from(from(bytes_, header_.pairs), description->stack_pointer)};
}

std::uint32_t GoFunctions::word(std::size_t offset) const {
  return ByteReader(from(list_, offset)).take<std::uint32_t>().value_or(0);
}

bool is_go_program(const Image& image) noexcept {
  const auto has = [&image](std::string_view name) { return image.section(name) != nullptr; };
  return has(".note.go.buildid") || has(".go.buildinfo") || std::ranges::any_of(kTables, has);
}

std::optional<GoTable> go_table(const Image& image) {
  const Section* const text = image.section(".text");
  for (const std::string_view name : kTables)
    if (auto table = image.section_bytes(name); table && text != nullptr) {
      const auto start = relocated_word(image, table->svma + kTextStartOffset);
      return GoTable{*std::move(table), start.value_or(text->svma)};
    }
  return std::nullopt;
}

}  // namespace pe::objects
