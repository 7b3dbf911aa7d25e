// SPDX-License-Identifier: MIT
#include "objects/each_symbol.h"

#include <elf.h>

#include <algorithm>

#include "base/byte_reader.h"

namespace pe::objects {
namespace {

using OnSymbol =
    std::function<void(std::string_view name, std::uint64_t svma, std::uint64_t bytes)>;

/// Calls `on_symbol` for the symbols of one table, as long as the image's reader may go on.
void each_of_table(const Image& image, Bytes symbols, Bytes names, const OnSymbol& on_symbol) {
  // A name may be as long as the table, and of many symbols.
  constexpr std::size_t kMostName = 4096, kSymbolsOfTurn = 64;
  ByteReader reader(symbols);
  for (std::size_t i = 0; const auto symbol = reader.take<Elf64_Sym>(); ++i) {
    if (i % kSymbolsOfTurn == 0 && !image.may_go_on())
      return;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name >= names.size())
      continue;
    const Bytes from = names.subspan(symbol->st_name);
    if (const auto name = ByteReader(from.first(std::min(from.size(), kMostName))).take_string())
      on_symbol(*name, symbol->st_value, symbol->st_size);
  }
}

}  // namespace

void for_each_symbol(const Image& image, const OnSymbol& on_symbol, std::uint64_t most_bytes) {
  for (const Section& section : image.sections()) {
    if ((section.type != SHT_SYMTAB && section.type != SHT_DYNSYM) || !image.is_64_bit() ||
        section.link >= image.sections().size())
      continue;
    const auto symbols = image.read(section, most_bytes);
    const auto names = image.read(image.sections()[section.link], most_bytes);
    if (symbols && names)
      each_of_table(image, *symbols, *names, on_symbol);
  }
}

}  // namespace pe::objects
