// Recognises a return address by the instruction before it, and some code without call frame
// information by its bytes.  This header is C and C++, because the kernel's unwinder uses it.
//
// Before a return address is a call: e8 with a distance of four bytes, or ff /2 with its operand
// (Intel SDM, volume 2, CALL).  Other bytes can look like a call, so this confirms a value that is
// likely for another reason.
// SPDX-License-Identifier: MIT
#pragma once

#ifdef __cplusplus
#include <cstdint>
namespace pe::unwind::x86_64 {
using std::int8_t;
using std::uint64_t;
using std::uint8_t;
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

// Code without call frame information that is identified by its bytes.
//
//     sub $8,%rsp; call *%rcx; add $8,%rsp; ret          python -X perf, 3.12 and 3.13
//     push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret         ... later versions
//     mov %rbx,%rsp; mov (%rsp),%rdi; ...                glibc's __start_context
//     push %rbp; jmp *%rbx; xor %rdi,%rdi; call _exit    the start of Boost's make_fcontext
//     call ...; add $8,%rsp; ret                         the end of a library's .init section
//
// Python runs each of its functions through a copy of such a stub, in memory that no file describes
// (CPython, Python/asm_trampoline.S).  The first functions of a ucontext and of a Boost context
// return to the other two, so a fiber's stack ends in these (glibc,
// sysdeps/unix/sysv/linux/x86_64/__start_context.S; Boost, make_x86_64_sysv_elf_gas.S).  OpenSSL
// adds a call to .init, for which the C library has no CFI.  Whatever ends so has a frame of one
// word.
//
// The comparison covers eight bytes, except the bytes of a call's distance.

/// A point in a stub where a frame can be, and its rule as in unwind::Rule.
struct StubPoint {
  uint64_t bytes;     ///< as they are in memory
  uint64_t mask;      ///< selects the bytes that are compared
  int8_t offset;      ///< from these bytes to the instruction; for a caller, to the byte before it
  uint8_t is_caller;  ///< whether the point is a return address
  uint8_t cfa_words;  ///< CFA = sp + 8 * cfa_words; 0: the stack ends here
  uint8_t frame_pointer_slot;  ///< where the frame pointer was saved, in words below the CFA; 0:
                               ///< not saved
};

/// The number of points, the bytes of each, and the range of StubPoint::offset.
enum { kStubPoints = 14, kStubBytes = 8, kMaxStubOffset = 10, kMinStubOffset = -1 };
/// The same for the return addresses, which come first.
enum { kStubCallers = 5, kMaxStubCallerOffset = 5 };

#define PE_STUB_MAKES_ROOM 0x8348d1ff08ec8348, ~0ULL
#define PE_STUB_PUSHES 0xc35dd1ffe5894855, ~0ULL
// Versions of clang-format differ in initializers in macros.
// clang-format off
#define PE_STUB_POINTS {                                                                    \
    {PE_STUB_MAKES_ROOM, 5, 1, 2, 0}, {PE_STUB_PUSHES, 5, 1, 2, 2},                         \
    {0x48243c8b48dc8948, ~0ULL, -1, 1, 0, 0}, {0x00e8ff3148e3ff55, ~0ULL >> 8, 2, 1, 0, 0}, \
    {0x000000c308c48348, ~0ULL >> 24, -1, 1, 2, 0},                                         \
    {PE_STUB_MAKES_ROOM, 0, 0, 1, 0}, {PE_STUB_MAKES_ROOM, 4, 0, 2, 0},                     \
    {PE_STUB_MAKES_ROOM, 6, 0, 2, 0}, {PE_STUB_MAKES_ROOM, 10, 0, 1, 0},                    \
    {PE_STUB_PUSHES, 0, 0, 1, 0}, {PE_STUB_PUSHES, 1, 0, 2, 2},                             \
    {PE_STUB_PUSHES, 4, 0, 2, 2}, {PE_STUB_PUSHES, 6, 0, 2, 2},                             \
    {PE_STUB_PUSHES, 7, 0, 1, 0}}
// clang-format on

#ifdef __cplusplus
inline constexpr StubPoint kStubs[kStubPoints] = PE_STUB_POINTS;
}  // namespace pe::unwind::x86_64
#else
static const struct StubPoint kStubs[kStubPoints] = PE_STUB_POINTS;
#endif
