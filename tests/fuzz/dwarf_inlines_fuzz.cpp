// Reads any bytes as an image with debug information.  A lookup ends quickly with a bounded number
// of frames, and does not depend on the lookups before it.
// SPDX-License-Identifier: MIT
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "names/dwarf/inlines.h"

namespace {

/// The result of a lookup, as text.
std::string frames_at(pe::names::Inlines& inlines, std::uint64_t svma) {
  const auto frames = inlines.at(svma);
  if (frames.size() > pe::names::Inlines::kMaxDepth + 1)
    std::abort();
  std::string text;
  for (const auto& frame : frames) {
    for (const std::string_view part : {frame.name, frame.linkage_name, frame.file})
      text.append(part) += '\n';
    text += std::to_string(frame.line) + '\n';
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  const auto result = pe::objects::Image::from_memory({data, data + size});
  const auto* image = std::get_if<pe::objects::Image>(&result);
  if (image == nullptr)
    return 0;
  pe::names::Inlines forwards(*image), backwards(*image);
  constexpr std::uint64_t kSteps = 64;
  for (const auto& section : image->sections()) {
    if (!section.is_code())
      continue;
    const auto svma = [&](std::uint64_t i) { return section.svma + section.bytes / kSteps * i; };
    std::array<std::string, kSteps> said;
    for (std::uint64_t i = 0; i < kSteps; ++i)
      said.at(i) = frames_at(forwards, svma(i));
    for (std::uint64_t i = kSteps; i-- > 0;)
      if (frames_at(backwards, svma(i)) != said.at(i))
        std::abort();
  }
  return 0;
}
