// The stacks of sites in the shared memory: the format, and how it is written.
//
// Each site has one entry, in the order of the sites' numbers.  An entry tells how its stack
// differs from the last one that the same thread added:
//
//     number      2 * the frames that were dropped from that stack, innermost first (kAllFrames:
//                 all); plus 1 if the entry is of another thread than the entry before (before the
//                 first: slot 0)
//     number      the slot of the thread; only after an odd number
//     number      the frames that were added, outermost first
//     byte[]      a bit for each of them, the lowest first: 1 if it is the expected one
//     number[]    the number of the heap::Code of each that is not
//
// The expected frame is the one that was added last, by any thread, to the frame outside of it
// (0: to an empty stack).  A number is LEB128.  Two of three frames are expected, and so an entry
// of a compiler takes eight bytes.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

namespace pe::heap {

inline constexpr std::uint32_t kAllFrames = 0x7fffffff;
inline constexpr unsigned kPartBits = 7;  ///< of a LEB128 number in a byte

/// The most bytes of an entry; numbers of codes and counts of frames are below 2^28.
constexpr std::uint64_t most_bytes_of_entry(std::uint64_t added) noexcept {
  constexpr std::uint64_t kNumberBytes = 5;
  return 3 * kNumberBytes + added / 8 + 1 + 4 * added;
}

/// A stack as a difference.
struct StackChange {
  std::uint32_t dropped, added;
  std::uint32_t slot;
  bool is_other;  ///< whether the slot is another than in the entry before
};

/// Writes an entry and returns the byte after it.  `code(i)` is the code of the added frame i,
/// `outside` that of the frame outside of them, 0 if there is none.  `expected` has an element for
/// each code and for 0.
template <typename CodeOf, typename Expected>
std::uint8_t* write_stack(std::uint8_t* out, const StackChange& change, std::uint32_t outside,
                          CodeOf code, Expected& expected) noexcept {
  const auto put = [&out](std::uint64_t value) {
    for (; value >> kPartBits != 0; value >>= kPartBits)
      *out++ = static_cast<std::uint8_t>(value | 1U << kPartBits);
    *out++ = static_cast<std::uint8_t>(value);
  };
  put(std::uint64_t{change.dropped} * 2 + (change.is_other ? 1 : 0));
  if (change.is_other)
    put(change.slot);
  put(change.added);
  std::uint8_t* bits = out;
  for (std::uint32_t i = 0; i < change.added; i += 8)
    *out++ = 0;
  for (std::uint32_t i = 0; i < change.added; ++i) {
    const std::uint32_t next = code(i);
    if (expected[outside] == next)
      bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1U << i % 8);
    else
      put(next);
    expected[outside] = next;
    outside = next;
  }
  return out;
}

}  // namespace pe::heap
