// Why a frame has no name: a value, to be counted and told.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "symbols/module_symbols.h"

namespace pe::symbolize {

enum class Unnamed : std::uint8_t {
  kNone,          ///< it has one
  kNotMapped,     ///< nothing was mapped at the address
  kNoMap,         ///< code made at run time, and no perf map that we may read
  kNotInMap,      ///< a perf map, but no entry
  kKernelHidden,  ///< /proc/kallsyms is restricted or missing
  kOtherKernel,   ///< recorded under a kernel that is not running here
  kNotInKernel,   ///< no kernel symbol covers it
  kFileMissing,
  kFileDenied,
  kFileUnusable,  ///< not ELF, damaged, not a regular file
  kStripped,      ///< no symbols at all
  kNotCovered,    ///< symbols, but none here
};
inline constexpr std::size_t kUnnamedReasons = 12;

/// "stripped of symbols", for the closing line.
const char* describe(Unnamed reason);

Unnamed reason_of(symbols::NoName why);

/// Frames, and those without a name by reason.
struct FrameCounts {
  std::uint64_t frames = 0;
  std::array<std::uint64_t, kUnnamedReasons> by_reason{};

  void count(Unnamed reason) {
    ++frames;
    ++by_reason[static_cast<std::size_t>(reason)];
  }
  [[nodiscard]] std::uint64_t unnamed() const { return frames - by_reason[0]; }
};

/// "120 of 4000 frames without a name (3.0 %): 100 stripped of symbols, 20 not mapped"; empty if
/// all have one.
std::string describe(const FrameCounts& counts);

}  // namespace pe::symbolize
