// SPDX-License-Identifier: MIT
#include "unwind/function_ranges.h"

#include "unwind/architecture.h"

namespace pe::unwind {

FunctionRanges::FunctionRanges(const objects::Image& image) {
  if (architecture::is_supported(image))
    sections_ = CfiSection::all_of(image);
}

std::optional<std::uint64_t> FunctionRanges::start_of(std::uint64_t svma) const noexcept {
  const auto range = range_of(svma);
  return range ? std::optional(range->start_svma) : std::nullopt;
}

std::optional<FunctionRanges::Range> FunctionRanges::range_of(std::uint64_t svma) const noexcept {
  for (const CfiSection& section : sections_) {
    const auto number = section.find(svma);
    const auto fde = number ? section.fde(*number) : std::nullopt;
    if (fde && fde->covers(svma))
      return Range{fde->start_svma, fde->start_svma + fde->bytes};
  }
  return std::nullopt;
}

}  // namespace pe::unwind
