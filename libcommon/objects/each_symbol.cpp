// SPDX-License-Identifier: MIT
#include "objects/each_symbol.h"

#include <elf.h>

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

}  // namespace pe::objects
