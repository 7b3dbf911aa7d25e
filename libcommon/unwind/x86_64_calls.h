// Recognises a return address by the instruction before it.  This header is C and C++, because the
// kernel's unwinder uses it.
//
// Before a return address is a call: e8 with a distance of four bytes, or ff /2 with its operand
// (Intel SDM, volume 2, CALL).  Other bytes can look like a call, so this confirms a value that is
// likely for another reason.
// SPDX-License-Identifier: MIT
#pragma once

#ifdef __cplusplus
#include <cstdint>
namespace pe::unwind::x86_64 {
using std::uint64_t;
#else
#include <stdint.h>
#endif

/// The number of bytes that ends_in_call() needs; no call is longer.
enum { kCallBytes = 8 };

/// Returns the byte that is `distance` bytes before the end.
#define PE_BYTE_BEFORE(bytes, distance) ((bytes) >> (64 - 8 * (distance)) & 0xff)

/// Whether the eight `bytes` end in a call, the first byte in the lowest bits.
static inline int ends_in_call(uint64_t bytes) {
  // ff /2 has 2 to 7 bytes: opcode, ModRM, an SIB byte if the lowest bits of ModRM are 4, and a
  // distance of 0, 1 or 4 bytes by its highest bits.
  const uint64_t last = PE_BYTE_BEFORE(bytes, 1);
  const uint64_t second = PE_BYTE_BEFORE(bytes, 2);
  const uint64_t third = PE_BYTE_BEFORE(bytes, 3);
  if (PE_BYTE_BEFORE(bytes, 5) == 0xe8)
    return 1;
  if (second == 0xff &&
      ((last & 0xf8) == 0xd0 || ((last & 0xf8) == 0x10 && (last & 7) != 4 && (last & 7) != 5)))
    return 1;
  if (third == 0xff && (second == 0x14 || ((second & 0xf8) == 0x50 && second != 0x54)))
    return 1;
  if (PE_BYTE_BEFORE(bytes, 4) == 0xff && third == 0x54)
    return 1;
  const uint64_t long_operand = PE_BYTE_BEFORE(bytes, 5);
  if (PE_BYTE_BEFORE(bytes, 6) == 0xff &&
      (long_operand == 0x15 || ((long_operand & 0xf8) == 0x90 && long_operand != 0x94)))
    return 1;
  const uint64_t longest = PE_BYTE_BEFORE(bytes, 6);
  return PE_BYTE_BEFORE(bytes, 7) == 0xff && (longest == 0x94 || longest == 0x14);
}

#ifdef __cplusplus
}  // namespace pe::unwind::x86_64
#endif
