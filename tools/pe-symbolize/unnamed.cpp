// SPDX-License-Identifier: MIT
#include "pe-symbolize/unnamed.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plural.h"

namespace pe::symbolize {

const char* describe(Unnamed reason) {
  switch (reason) {
    case Unnamed::kNone:
      return "named";
    case Unnamed::kNotMapped:
      return "outside of all code, as where code has no frame pointers to follow";
    case Unnamed::kNoMap:
      return "made at run time, without a readable perf map";
    case Unnamed::kNotInMap:
      return "not in the program's perf map";
    case Unnamed::kKernelHidden:
      return "in the kernel, whose symbols are hidden";
    case Unnamed::kOtherKernel:
      return "in a kernel that is not running here";
    case Unnamed::kNotInKernel:
      return "in the kernel, not in /proc/kallsyms";
    case Unnamed::kFileMissing:
      return "in files that are gone";
    case Unnamed::kFileDenied:
      return "in files that may not be read";
    case Unnamed::kFileUnusable:
      return "in files that are no usable ELF";
    case Unnamed::kStripped:
      return "in files stripped of symbols";
    case Unnamed::kNotCovered:
      return "in no symbol of their file";
  }
  return "";
}

Unnamed reason_of(symbols::NoName why) {
  switch (why) {
    case symbols::NoName::kMissing:
      return Unnamed::kFileMissing;
    case symbols::NoName::kPermission:
      return Unnamed::kFileDenied;
    case symbols::NoName::kNoSymbols:
      return Unnamed::kStripped;
    case symbols::NoName::kNotCovered:
      return Unnamed::kNotCovered;
    case symbols::NoName::kNotRegular:
    case symbols::NoName::kUnreadable:
    case symbols::NoName::kNotElf:
    case symbols::NoName::kUnsupported:
    case symbols::NoName::kDamaged:
      break;
  }
  return Unnamed::kFileUnusable;
}

std::string describe(const FrameCounts& counts) {
  if (counts.unnamed() == 0)
    return {};
  constexpr double kPercent = 100;
  std::string text = fmt::format(
      "{} of {} without a name ({:.1f} %)", counts.unnamed(), plural(counts.frames, "frame"),
      kPercent * static_cast<double>(counts.unnamed()) / static_cast<double>(counts.frames));
  const char* separator = ": ";
  for (std::size_t reason = 1; reason < kUnnamedReasons; ++reason) {
    if (counts.by_reason[reason] == 0)
      continue;
    text += fmt::format("{}{} {}", separator, counts.by_reason[reason],
                        describe(static_cast<Unnamed>(reason)));
    separator = ", ";
  }
  return text;
}

}  // namespace pe::symbolize
