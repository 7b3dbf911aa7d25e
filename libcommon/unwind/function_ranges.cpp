// SPDX-License-Identifier: MIT
#include "unwind/function_ranges.h"

#include <algorithm>
#include <cstddef>

#include "unwind/architecture.h"
#include "unwind/x86_64_instruction.h"

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

namespace {

using Flow = Instruction::Flow;

constexpr std::uint64_t kAlignment = 16;

/// Returns the bytes of an instruction that only fills room; 0 for others.
std::size_t padding_at(Bytes code) {
  constexpr std::byte kNop{0x90}, kTrap{0xcc}, kEscape{0x0f}, kLongNop{0x1f};
  constexpr std::byte kOperandSize{0x66}, kSegment{0x2e};
  const auto instruction = decode_x86_64(code);
  if (!instruction)
    return 0;
  Bytes rest = code.first(instruction->bytes);
  while (rest.size() > 1 && (rest.front() == kOperandSize || rest.front() == kSegment))
    rest = rest.subspan(1);
  const bool is_long = rest.size() > 1 && rest[0] == kEscape && rest[1] == kLongNop;
  return is_long || rest.front() == kNop || rest.front() == kTrap ? instruction->bytes : 0;
}

/// Returns where the next function starts if one ends at `at`; 0 otherwise.
std::size_t start_after(Bytes code, std::size_t at, std::uint64_t start_svma) {
  while ((start_svma + at) % kAlignment != 0) {
    const std::size_t padding = padding_at(code.subspan(at));
    if (padding == 0)
      return 0;
    at += padding;
  }
  return at;
}

/// Adds the starts that the code itself shows.
void add_after_returns(Bytes code, std::uint64_t start_svma, std::vector<std::uint64_t>& starts) {
  std::size_t furthest = 0;  // that was jumped to
  for (std::size_t at = 0; at < code.size();) {
    const auto instruction = decode_x86_64(code.subspan(at));
    if (!instruction) {  // data, or cut off
      starts.push_back(start_svma + at);
      return;
    }
    at += instruction->bytes;
    const bool jumps = instruction->flow == Flow::kBranch || instruction->flow == Flow::kJump;
    if (jumps && instruction->target > 0)
      furthest = std::max(
          furthest, std::min(at + static_cast<std::size_t>(instruction->target), code.size()));
    const bool may_end = instruction->flow == Flow::kReturn && furthest < at;
    if (const std::size_t start = may_end ? start_after(code, at, start_svma) : 0; start != 0) {
      starts.push_back(start_svma + start);
      at = start;
    }
  }
}

}  // namespace

std::vector<std::uint64_t> function_starts(Bytes code, std::uint64_t start_svma,
                                           const FunctionRanges& ranges) {
  std::vector<std::uint64_t> starts;
  add_after_returns(code, start_svma, starts);
  std::erase_if(starts, [&](std::uint64_t svma) { return ranges.range_of(svma).has_value(); });
  ranges.for_each([&](const FunctionRanges::Range& range) {
    for (const std::uint64_t svma : {range.start_svma, range.end_svma})
      if (svma > start_svma && svma - start_svma <= code.size())
        starts.push_back(svma);
  });
  std::ranges::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

}  // namespace pe::unwind
