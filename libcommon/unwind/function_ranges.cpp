// SPDX-License-Identifier: MIT
#include "unwind/function_ranges.h"

#include "unwind/architecture.h"

namespace pe::unwind {
namespace {

FunctionRanges::Range range_of_fde(const Fde& fde) noexcept {
  return {fde.start_svma, fde.start_svma + fde.bytes, fde.lsda_svma};
}

}  // namespace

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
      return range_of_fde(*fde);
  }
  return std::nullopt;
}

void FunctionRanges::for_each(const std::function<void(const Range&)>& on_range) const {
  for (const CfiSection& section : sections_)
    for (std::size_t number = 0; number < section.fde_count(); ++number)
      if (const auto fde = section.fde(number))
        on_range(range_of_fde(*fde));
}

}  // namespace pe::unwind
