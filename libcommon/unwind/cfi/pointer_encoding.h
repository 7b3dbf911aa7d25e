// Numbers and addresses as unwind sections write them: LEB128, and pointers whose first byte says
// how wide they are and what they count from.
//
// Sources: DWARF 5, 7.6 "Variable Length Data"; LSB 5.0 Core, 10.5 "DWARF Extensions"
// (DW_EH_PE_*).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace pe::unwind {

/// At most ten bytes, as 64 bits need; bits beyond them are dropped.  nullopt (and no promise
/// where the reader stands) if it does not end before.
std::optional<std::uint64_t> read_uleb128(ByteReader& in) noexcept;
std::optional<std::int64_t> read_sleb128(ByteReader& in) noexcept;

/// A ByteReader that knows where its bytes were linked to, for pointers relative to themselves.
class AddressedReader : public ByteReader {
 public:
  /// `svma` is that of the first byte.
  AddressedReader(Bytes bytes, std::uint64_t svma) noexcept
      : ByteReader(bytes), end_svma_(svma + bytes.size()) {}

  /// The svma of the next byte.
  [[nodiscard]] std::uint64_t here() const noexcept { return end_svma_ - left().size(); }

  /// The next `size` bytes as a reader of their own, or nullopt (and no movement).
  std::optional<AddressedReader> take_part(std::uint64_t size) noexcept;

 private:
  std::uint64_t end_svma_;  ///< may wrap, as addresses do
};

/// The part of an encoding that says how wide the number is, without what it counts from.
inline constexpr std::uint8_t kPointerFormatMask = 0x0f;

/// Reads a pointer of `encoding` (DW_EH_PE_...).  `data_svma` is what DW_EH_PE_datarel counts
/// from.  Sums wrap: an address is no size.  nullopt if it is cut off, omitted, indirect, or
/// relative to something that unwind sections of x86-64 and aarch64 do not use (text, function).
std::optional<std::uint64_t> read_pointer(AddressedReader& in, std::uint8_t encoding,
                                          std::uint64_t data_svma) noexcept;

/// Moves over a pointer of `encoding` whatever it counts from; false if it is cut off.
bool skip_pointer(AddressedReader& in, std::uint8_t encoding) noexcept;

}  // namespace pe::unwind
