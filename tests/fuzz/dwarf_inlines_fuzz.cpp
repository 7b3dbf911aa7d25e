// Any bytes as an image with debug information: a look-up ends, soon, with frames that are bounded.
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string>

#include "dwarf/inlines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  const auto result = pe::elf::Image::from_memory({data, data + size});
  const auto* image = std::get_if<pe::elf::Image>(&result);
  if (image == nullptr)
    return 0;
  pe::dwarf::Inlines inlines(*image);
  std::size_t bytes = 0;
  for (const auto& section : image->sections()) {
    constexpr std::uint64_t kSteps = 64;
    for (std::uint64_t i = 0; section.is_code() && i < kSteps; ++i) {
      const auto frames = inlines.at(section.svma + section.bytes / kSteps * i);
      if (frames.size() > pe::dwarf::Inlines::kMaxDepth + 1)
        std::abort();
      for (const auto& frame : frames)  // every byte must be readable
        bytes += std::string(frame.name).size() + std::string(frame.linkage_name).size() +
                 std::string(frame.file).size();
    }
  }
  return bytes == static_cast<std::size_t>(-1) ? 1 : 0;
}
