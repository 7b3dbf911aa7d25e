// Reads any bytes as links to debug information in other files, and as compressed debug
// information.  A link does not leave its folder; sizes stay within their limits.
// SPDX-License-Identifier: MIT
#include <climits>
#include <cstdlib>

#include "base/io/compression.h"
#include "objects/debug_file.h"
#include "objects/symbol_table.h"

namespace {

void check(bool holds) {
  if (!holds)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  const pe::Bytes bytes(data, size);
  if (const auto link = pe::objects::parse_debug_link(bytes))
    check(!link->file.empty() && link->file.size() <= NAME_MAX && link->file != ".." &&
          link->file.find('/') == std::string::npos);
  if (const auto link = pe::objects::parse_alt_link(bytes))
    check(!link->path.empty() && link->path.size() < PATH_MAX && link->build_id.size() <= 64 &&
          pe::objects::hex(link->build_id).size() == link->build_id.size() * 2);
  constexpr std::uint64_t kLimit = 1U << 20;
  if (const auto plain = pe::unxz(bytes, kLimit))
    check(plain->size() <= kLimit);
  const auto result = pe::objects::Image::from_memory({bytes.begin(), bytes.end()});
  if (const auto* image = std::get_if<pe::objects::Image>(&result)) {
    pe::objects::DebugFinder finder({.roots = {}, .sysroot = {}, .fetch = {}});
    if (const auto mini = finder.mini(*image, "image"))
      check(pe::objects::SymbolTable(*image, *mini).memory_bytes() < (1U << 30));
    finder.separate(*image, "/nonexistent/image");
  }
  return 0;
}
