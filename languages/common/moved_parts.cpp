// SPDX-License-Identifier: MIT
#include "languages/common/moved_parts.h"

#include <algorithm>
#include <cstdint>

#include "unwind/cfi/unwind_table.h"
#include "unwind/x86_64_instruction.h"

namespace pe::unwind {
namespace {

using Target = std::uint64_t;

/// Returns where the instructions of a range jump to.  Ends at the first that cannot be decoded.
std::vector<Target> jumps_in(const objects::Image& image, const FunctionRanges::Range& range) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20U;
  std::vector<Target> targets;
  const std::uint64_t size = range.end_svma - range.start_svma;
  const auto loaded = image.loaded_bytes(range.start_svma, std::min(size, kMostBytes));
  const Bytes bytes = loaded ? Bytes(loaded->bytes) : Bytes();
  std::size_t at = 0;
  while (const auto instruction = decode_x86_64(bytes.subspan(at))) {
    at += instruction->bytes;
    using Flow = Instruction::Flow;
    if (instruction->flow == Flow::kJump || instruction->flow == Flow::kBranch)
      targets.push_back(range.start_svma + at + static_cast<std::uint64_t>(instruction->target));
  }
  return targets;
}

}  // namespace

std::vector<FunctionRanges::Range> moved_parts(const objects::Image& image,
                                               FunctionRanges::Range function) {
  constexpr std::size_t kMostParts = 8;
  constexpr Rule kAtEntry(RuleKind::kStackPointer, 1, 0);
  std::vector<FunctionRanges::Range> found;
  if (!image.is_x86_64())
    return found;
  const FunctionRanges ranges(image);
  UnwindTable rules(image);
  const auto examine = [&](const FunctionRanges::Range& range) {
    for (const Target target : jumps_in(image, range)) {
      constexpr std::size_t kTurnsOfFunction = 64;  // its rules take up to 5 ms
      if (!image.may_go_on(kTurnsOfFunction))
        return;
      const bool is_known = function.covers(target) ||
                            std::ranges::any_of(found, [target](const FunctionRanges::Range& part) {
                              return part.covers(target);
                            });
      const auto part = is_known ? std::nullopt : ranges.range_of(target);
      const bool is_part =
          part && !part->covers(function.start_svma) && rules.rule(part->start_svma) != kAtEntry;
      if (is_part && found.size() < kMostParts)
        found.push_back(*part);
    }
  };
  examine(function);
  for (std::size_t i = 0; i < found.size(); ++i)
    examine(FunctionRanges::Range(found[i]));
  return found;
}

}  // namespace pe::unwind
