// Reads any bytes as an ELF image.  A found symbol covers the address that was looked up.
// SPDX-License-Identifier: MIT
#include <cstdlib>

#include "objects/symbol_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  const auto result = pe::objects::Image::from_memory({data, data + size});
  const auto* image = std::get_if<pe::objects::Image>(&result);
  if (image == nullptr)
    return 0;
  for (const auto& section : image->sections())
    if (const auto bytes = image->read(section); bytes && bytes->size() > size)
      std::abort();
  const pe::objects::SymbolTable table(*image);
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    const auto symbol = table.at(i);
    for (const std::uint64_t svma : {symbol.svma - 1, symbol.svma, symbol.svma + symbol.bytes}) {
      const auto found = table.find(svma);
      if (found && svma - found->svma >= found->bytes)
        std::abort();
      if (svma == symbol.svma && (!found || found->svma != svma))
        std::abort();
    }
  }
  for (std::uint64_t offset = 0; offset < size; offset += 64)
    if (const auto svma = image->svma_of_file_offset(offset))
      if (const auto found = table.find(*svma); found && found->svma > *svma)
        std::abort();
  return 0;
}
