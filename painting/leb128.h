// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace pe::painting {

/// Appends an unsigned LEB128 number (DWARF 5, 7.6): 7 bits a byte, the lowest first.
inline void append_leb128(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U)
    out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

}  // namespace pe::painting
