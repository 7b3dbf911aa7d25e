// Reads any bytes as a DWARF package.  A unit is found within the limit, or not at all.
// SPDX-License-Identifier: MIT
#include "names/dwarf/split_units.h"

#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  constexpr std::uint64_t kLimit = 1U << 24;
  constexpr std::size_t kHeaderBytes = 16;
  constexpr std::size_t kIds = 64;
  auto result = pe::objects::Image::from_memory({data, data + size});
  auto* image = std::get_if<pe::objects::Image>(&result);
  if (image == nullptr)
    return 0;
  const auto index = image->section_bytes(".debug_cu_index");
  const pe::names::SplitPackage package(std::move(*image), kLimit);
  for (std::size_t i = 0; index && i < kIds; ++i) {
    const std::size_t at = kHeaderBytes + i * sizeof(std::uint64_t);
    std::uint64_t id = 0;
    if (at + sizeof id > index->bytes.size())
      break;
    std::memcpy(&id, index->bytes.data() + at, sizeof id);
    if (const auto unit = package.find(id, kLimit); unit && unit->bytes() > kLimit)
      std::abort();
  }
  return 0;
}
