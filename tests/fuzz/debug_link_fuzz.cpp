// Any bytes as what names or holds debug information elsewhere: a link stays in its folder, sizes
// stay within their limits.
// SPDX-License-Identifier: MIT
#include <climits>
#include <cstdlib>

#include "elf/debug_file.h"
#include "elf/debug_link.h"
#include "elf/symbol_table.h"
#include "io/xz.h"

namespace {

void check(bool holds) {
  if (!holds)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  const pe::Bytes bytes(data, size);
  if (const auto link = pe::elf::parse_debug_link(bytes))
    check(!link->file.empty() && link->file.size() <= NAME_MAX && link->file != ".." &&
          link->file.find('/') == std::string::npos);
  if (const auto link = pe::elf::parse_alt_link(bytes))
    check(!link->path.empty() && link->path.size() < PATH_MAX && link->build_id.size() <= 64 &&
          pe::elf::hex(link->build_id).size() == link->build_id.size() * 2);
  constexpr std::uint64_t kLimit = 1U << 20;
  if (const auto plain = pe::io::unxz(bytes, kLimit))
    check(plain->size() <= kLimit);
  const auto result = pe::elf::Image::from_memory({bytes.begin(), bytes.end()});
  if (const auto* image = std::get_if<pe::elf::Image>(&result)) {
    pe::elf::DebugFinder finder({.roots = {}, .sysroot = {}, .fetch = {}});
    if (const auto mini = finder.mini(*image, "image"))
      check(pe::elf::SymbolTable(*image, *mini).memory_bytes() < (1U << 30));
    finder.separate(*image, "/nonexistent/image");
  }
  return 0;
}
