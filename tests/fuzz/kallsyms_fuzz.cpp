// Reads any text as /proc/kallsyms.  A found symbol starts at or before the address, and a lookup
// of its start finds it again.
// SPDX-License-Identifier: MIT
#include <cstdlib>

#include "stream/proc/kallsyms.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const auto result = pe::stream::Kallsyms::parse({data, size});
  const auto* symbols = std::get_if<pe::stream::Kallsyms>(&result);
  if (symbols == nullptr)
    return 0;
  if (symbols->size() == 0 || symbols->size() + symbols->skipped_lines() > size)
    std::abort();
  for (const std::uint64_t address :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x1000}, std::uint64_t{0xabcdef},
        symbols->text_start().value_or(5), ~std::uint64_t{0}}) {
    const auto found = symbols->find(address);
    if (!found)
      continue;
    const auto first = symbols->find(found->start);
    if (found->start > address || found->name.empty() || found->module.empty() || !first ||
        first->start != found->start || first->name != found->name ||
        first->module != found->module)
      std::abort();
    if (const auto before = symbols->find(found->start - 1);
        before && found->start != 0 && before->start >= found->start)
      std::abort();
  }
  return 0;
}
