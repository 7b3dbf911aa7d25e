// The user registers in samples (PERF_SAMPLE_REGS_USER), by the kernel's numbers.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pe::stream {

#if defined(__x86_64__)
/// Their DWARF numbers (System V ABI AMD64, figure 3.36); -1 if a register has none.  The index is
/// the kernel's number (arch/x86/include/uapi/asm/perf_regs.h).  From 0 on: ax bx cx dx si di bp sp
/// ip, then flags and segments, which have no DWARF number here, then r8 to r15.
inline constexpr std::array<int, 24> kDwarfNumbers = {0,  3,  2,  1,  4, 5, 6,  7,  16, -1, -1, -1,
                                                      -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15};
#else
inline constexpr std::array<int, 0> kDwarfNumbers = {};
#endif

/// The registers that have a DWARF number, one bit each.
inline constexpr std::uint64_t kKnownRegisters = [] {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kDwarfNumbers.size(); ++i)
    mask |= kDwarfNumbers[i] >= 0 ? std::uint64_t{1} << i : 0;
  return mask;
}();

}  // namespace pe::stream
