// Any text as /proc/kallsyms: what is found starts at or before what was asked for.
// SPDX-License-Identifier: MIT
#include <cstdlib>

#include "proc/kallsyms.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const auto result = pe::proc::Kallsyms::parse({data, size});
  const auto* symbols = std::get_if<pe::proc::Kallsyms>(&result);
  if (symbols == nullptr)
    return 0;
  if (symbols->size() == 0 || symbols->size() + symbols->skipped_lines() > size)
    std::abort();
  for (const std::uint64_t address :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x1000}, std::uint64_t{0xabcdef},
        symbols->text_start().value_or(5), symbols->text_end().value_or(6), ~std::uint64_t{0}}) {
    const auto found = symbols->find(address);
    if (found && (found->start > address || address - found->start > 0xffffffffffff000 ||
                  found->name.empty() || found->module.empty()))
      std::abort();
  }
  return 0;
}
