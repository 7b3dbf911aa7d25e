// SPDX-License-Identifier: MIT
#include "objects/each_symbol.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/byte_reader.h"

namespace pe::objects {

void for_each_symbol(const Image& image,
                     const std::function<void(std::string_view name, std::uint64_t svma,
                                              std::uint64_t bytes)>& on_symbol,
                     std::uint64_t most_bytes) {
  for (const Section& section : image.sections()) {
    if ((section.type != SHT_SYMTAB && section.type != SHT_DYNSYM) || !image.is_64_bit() ||
        section.link >= image.sections().size())
      continue;
    const auto symbols = image.read(section, most_bytes);
    const auto names = image.read(image.sections()[section.link], most_bytes);
    if (!symbols || !names)
      continue;
    ByteReader reader(*symbols);
    while (const auto symbol = reader.take<Elf64_Sym>()) {
      if (symbol->st_shndx == SHN_UNDEF || symbol->st_name >= names->size())
        continue;
      if (const auto name = ByteReader(Bytes(*names).subspan(symbol->st_name)).take_string())
        on_symbol(*name, symbol->st_value, symbol->st_size);
    }
  }
}

bool has_name(const Image& image, std::string_view name) {
  constexpr std::uint64_t kMostOfNames = std::uint64_t{256} << 20U;
  const std::string wanted = fmt::format("{0}{1}{0}", '\0', name);
  return std::ranges::any_of(image.sections(), [&](const Section& section) {
    const auto names =
        section.type == SHT_STRTAB ? image.read(section, kMostOfNames) : std::nullopt;
    return names && text_of(*names).find(wanted) != std::string_view::npos;
  });
}

}  // namespace pe::objects
