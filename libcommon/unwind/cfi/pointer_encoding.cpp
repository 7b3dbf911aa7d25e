// SPDX-License-Identifier: MIT
#include "unwind/cfi/pointer_encoding.h"

#include <dwarf.h>

namespace pe::unwind {
namespace {

constexpr unsigned kMaxLebBytes = 10;
constexpr std::uint8_t kBaseMask = 0x70;
constexpr std::uint64_t kPointerBytes = 8;

struct Leb {
  std::uint64_t value;
  unsigned bits;     ///< number of bits in the bytes
  bool is_negative;  ///< if read as a signed number
};

std::optional<Leb> read_leb(ByteReader& in) noexcept {
  Leb leb{};
  for (unsigned i = 0; i < kMaxLebBytes; ++i) {
    const auto byte = in.take<std::uint8_t>();
    if (!byte)
      return std::nullopt;
    leb.value |= std::uint64_t{*byte & 0x7fU} << leb.bits;
    leb.bits += 7;
    if ((*byte & 0x80U) == 0) {
      leb.is_negative = (*byte & 0x40U) != 0;
      return leb;
    }
  }
  return std::nullopt;
}

template <typename T>
std::optional<std::uint64_t> take_as_address(ByteReader& in) noexcept {
  const auto value = in.take<T>();
  return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

/// Reads the number itself, sign-extended if the format is signed.
std::optional<std::uint64_t> read_number(ByteReader& in, std::uint8_t format) noexcept {
  switch (format) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
      return take_as_address<std::uint64_t>(in);
    case DW_EH_PE_udata4:
      return take_as_address<std::uint32_t>(in);
    case DW_EH_PE_sdata4:
      return take_as_address<std::int32_t>(in);
    case DW_EH_PE_udata2:
      return take_as_address<std::uint16_t>(in);
    case DW_EH_PE_sdata2:
      return take_as_address<std::int16_t>(in);
    case DW_EH_PE_uleb128:
      return read_uleb128(in);
    case DW_EH_PE_sleb128: {
      const auto value = read_sleb128(in);
      return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::uint64_t> read_uleb128(ByteReader& in) noexcept {
  const auto leb = read_leb(in);
  return leb ? std::optional(leb->value) : std::nullopt;
}

std::optional<std::int64_t> read_sleb128(ByteReader& in) noexcept {
  const auto leb = read_leb(in);
  if (!leb)
    return std::nullopt;
  const bool extends = leb->is_negative && leb->bits < 64;
  return static_cast<std::int64_t>(extends ? leb->value | ~std::uint64_t{0} << leb->bits
                                           : leb->value);
}

std::optional<AddressedReader> AddressedReader::take_part(std::uint64_t size) noexcept {
  const std::uint64_t svma = here();
  const auto bytes = take_bytes(size);
  return bytes ? std::optional(AddressedReader(*bytes, svma)) : std::nullopt;
}

std::optional<std::uint64_t> read_pointer(AddressedReader& in, std::uint8_t encoding,
                                          std::uint64_t data_svma) noexcept {
  if (encoding == DW_EH_PE_omit || (encoding & DW_EH_PE_indirect) != 0)
    return std::nullopt;
  std::uint64_t base = 0;
  switch (encoding & kBaseMask) {
    case DW_EH_PE_absptr:
      break;
    case DW_EH_PE_pcrel:
      base = in.here();
      break;
    case DW_EH_PE_datarel:
      base = data_svma;
      break;
    case DW_EH_PE_aligned:
      if (!in.skip(-in.here() % kPointerBytes))
        return std::nullopt;
      break;
    default:
      return std::nullopt;
  }
  const auto number = read_number(in, encoding & kPointerFormatMask);
  return number ? std::optional(base + *number) : std::nullopt;
}

bool skip_pointer(AddressedReader& in, std::uint8_t encoding) noexcept {
  if (encoding == DW_EH_PE_omit)
    return true;
  if ((encoding & kBaseMask) == DW_EH_PE_aligned && !in.skip(-in.here() % kPointerBytes))
    return false;
  return read_number(in, encoding & kPointerFormatMask).has_value();
}

}  // namespace pe::unwind
