// SPDX-License-Identifier: MIT
#include "elf/needed_libraries.h"

#include <elf.h>

#include <algorithm>

#include "base/byte_reader.h"

namespace pe::elf {

std::vector<std::string> needed_libraries(const Image& image) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 24;
  std::vector<std::string> names;
  const Section* dynamic = image.section(".dynamic");
  if (!image.is_64_bit() || dynamic == nullptr || dynamic->link >= image.sections().size())
    return names;
  const auto entries = image.read(*dynamic, kMostBytes);
  const auto strings = image.read(image.sections()[dynamic->link], kMostBytes);
  if (!entries || !strings)
    return names;
  ByteReader reader(*entries);
  while (const auto entry = reader.take<Elf64_Dyn>()) {
    if (entry->d_tag == DT_NULL)
      break;
    if (entry->d_tag != DT_NEEDED || entry->d_un.d_val >= strings->size())
      continue;
    const auto begin = strings->begin() + static_cast<std::ptrdiff_t>(entry->d_un.d_val);
    const auto end = std::find(begin, strings->end(), std::byte{0});
    std::string name;
    std::transform(begin, end, std::back_inserter(name),
                   [](std::byte byte) { return static_cast<char>(byte); });
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace pe::elf
