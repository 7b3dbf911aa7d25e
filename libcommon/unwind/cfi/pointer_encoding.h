// Reads numbers and addresses in the form that unwind sections use: LEB128, and pointers.  An
// encoding byte gives a pointer's width and the base that it counts from.
//
// Sources: DWARF 5, 7.6 "Variable Length Data"; LSB 5.0 Core, 10.5 "DWARF Extensions" (DW_EH_PE_*).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace pe::unwind {

/// Reads at most ten bytes, as 64 bits need, and drops bits beyond them.  Returns nullopt if the
/// number does not end within these; the reader's position is then unspecified.
std::optional<std::uint64_t> read_uleb128(ByteReader& in) noexcept;
std::optional<std::int64_t> read_sleb128(ByteReader& in) noexcept;

/// A ByteReader that knows the address its bytes were linked to, for pointers relative to
/// themselves.
class AddressedReader : public ByteReader {
 public:
  /// `svma` is the address of the first byte.
  AddressedReader(Bytes bytes, std::uint64_t svma) noexcept
      : ByteReader(bytes), end_svma_(svma + bytes.size()) {}

  /// The svma of the next byte.
  [[nodiscard]] std::uint64_t here() const noexcept { return end_svma_ - left().size(); }

  /// Returns the next `size` bytes as a separate reader; nullopt, without moving, if there are
  /// fewer.
  std::optional<AddressedReader> take_part(std::uint64_t size) noexcept;

 private:
  std::uint64_t end_svma_;  ///< may wrap, as addresses do
};

/// The bits of an encoding that give the number's width, without its base.
inline constexpr std::uint8_t kPointerFormatMask = 0x0f;

/// Reads a pointer of `encoding` (DW_EH_PE_...).  DW_EH_PE_datarel counts from `data_svma`.  Sums
/// wrap: an address is not a size.  Returns nullopt if the pointer is cut off, omitted or indirect.
/// The same holds for bases that unwind sections of x86-64 and aarch64 do not use (text, function).
std::optional<std::uint64_t> read_pointer(AddressedReader& in, std::uint8_t encoding,
                                          std::uint64_t data_svma) noexcept;

/// Skips a pointer of `encoding`, whatever its base; false if it is cut off.
bool skip_pointer(AddressedReader& in, std::uint8_t encoding) noexcept;

}  // namespace pe::unwind
