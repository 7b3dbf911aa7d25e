// Where the kernel's program finds the weight of a probe's hit.  For C and C++.
// SPDX-License-Identifier: MIT
#pragma once

#ifdef __cplusplus
#include <cstdint>
namespace pe::unwind {
using std::int64_t;
using std::uint32_t;
#else
#include <stdint.h>
#endif

enum HitWeightKind { kHitRegister, kHitMemory, kHitConstant };

struct HitWeight {
  uint32_t kind;       ///< HitWeightKind
  uint32_t reg;        ///< DWARF number, 0-15, of the register, or of memory's base
  uint32_t bytes;      ///< 1, 2, 4 or 8
  uint32_t is_signed;  ///< 0 or 1
  int64_t offset;      ///< of memory from the base; or the constant
};

#ifdef __cplusplus
}  // namespace pe::unwind
#endif
