// SPDX-License-Identifier: MIT
#include "languages/common/memory.h"

#include <algorithm>

namespace pe::languages {

bool Memory::read(std::uint64_t avma, std::span<std::byte> into) {
  if (!spender_.may_go_on())
    return false;
  while (!into.empty()) {
    const std::uint64_t offset = avma % kPageBytes;
    const Page* page = page_at(avma - offset);
    if (page == nullptr)
      return false;
    const auto bytes = static_cast<std::size_t>(std::min(kPageBytes - offset, into.size()));
    std::copy_n(page->bytes.begin() + static_cast<std::ptrdiff_t>(offset), bytes, into.begin());
    into = into.subspan(bytes);
    avma += bytes;
  }
  return true;
}

/// Returns null if the page is unreadable.
const Memory::Page* Memory::page_at(std::uint64_t start) {
  Page& page = pages_[start / kPageBytes % kPages];
  if (page.start != start || page.time != time_) {
    if (!spender_.may_read(kPageBytes))
      return nullptr;
    page.bytes.resize(kPageBytes);
    page.start = start;
    page.time = time_;
    if (read_(start, page.bytes) != kPageBytes)
      page.bytes.clear();
  }
  return page.bytes.empty() ? nullptr : &page;
}

}  // namespace pe::languages
