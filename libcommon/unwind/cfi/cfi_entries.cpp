// SPDX-License-Identifier: MIT
#include "unwind/cfi/cfi_entries.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "unwind/cfi/pointer_encoding.h"

namespace pe::unwind {
namespace {

constexpr std::uint32_t kDwarf64Escape = 0xffffffff;
constexpr std::size_t kMaxCieProgramBytes = 4096;  // common programs have 2 to 6
constexpr std::size_t kMaxAugmentationBytes = 16;

/// Reads the string at the start; nullopt if it is too long.
std::optional<std::string_view> take_augmentation(ByteReader& in) noexcept {
  const Bytes left = in.left();
  ByteReader window(left.first(std::min(left.size(), kMaxAugmentationBytes + 1)));
  const auto text = window.take_string();
  if (!text || !in.skip(text->size() + 1))
    return std::nullopt;
  return text;
}

/// Reads the number of the return address's register.
std::optional<std::uint64_t> take_register(ByteReader& in, std::uint8_t version) noexcept {
  if (version != 1)
    return read_uleb128(in);
  const auto number = in.take<std::uint8_t>();
  return number ? std::optional<std::uint64_t>(*number) : std::nullopt;
}

/// Reads the data that 'z' and the letters after it announce.  False if they are not understood.
bool read_augmentation(AddressedReader& in, std::string_view letters, Cie& cie) noexcept {
  if (letters.empty())
    return true;
  if (letters.front() != 'z')
    return false;  // "eh" of g++ 2; no newer compiler writes it
  const auto size = read_uleb128(in);
  auto data = size ? in.take_part(*size) : std::nullopt;
  if (!data)
    return false;
  cie.has_augmentation_data = true;
  for (const char letter : letters.substr(1)) {
    std::optional<std::uint8_t> encoding = 0;
    if (letter == 'R' || letter == 'L' || letter == 'P')
      encoding = data->take<std::uint8_t>();
    if (!encoding)
      return false;
    if (letter == 'R')
      cie.pointer_encoding = *encoding;
    else if (letter == 'L')
      cie.lsda_encoding = *encoding;
    else if (letter == 'P' && !skip_pointer(*data, *encoding))
      return false;
    else if (letter == 'S')
      cie.is_signal_frame = true;
    else if (std::string_view("LPB").find(letter) == std::string_view::npos)
      break;  // unknown: the rest cannot be parsed, but 'z' has given its end
  }
  return true;
}

/// Reads the address of an exception table; 0 if there is none.  The number 0 means that, whatever
/// its base.
std::uint64_t read_lsda(AddressedReader data, std::uint8_t encoding,
                        std::uint64_t data_svma) noexcept {
  AddressedReader number = data;
  const auto is_there = read_pointer(number, encoding & kPointerFormatMask, 0);
  if (encoding == DW_EH_PE_omit || is_there.value_or(0) == 0)
    return 0;
  return read_pointer(data, encoding, data_svma).value_or(0);
}

}  // namespace

AddressedReader CfiEntries::reader_at(std::uint64_t offset) const noexcept {
  const auto from = static_cast<std::size_t>(std::min<std::uint64_t>(offset, section_.size()));
  return {section_.subspan(from), svma_ + from};
}

std::optional<CfiEntries::Entry> CfiEntries::entry_at(std::uint64_t offset) const noexcept {
  AddressedReader in = reader_at(offset);
  const auto short_length = in.take<std::uint32_t>();
  if (!short_length || *short_length == 0)
    return std::nullopt;
  const bool is_dwarf64 = *short_length == kDwarf64Escape;
  const auto length =
      is_dwarf64 ? in.take<std::uint64_t>() : std::optional<std::uint64_t>(*short_length);
  auto body = length ? in.take_part(*length) : std::nullopt;
  if (!body)
    return std::nullopt;
  const std::uint64_t id_offset = body->here() - svma_;
  // In .eh_frame the id has four bytes, whatever the size of the length (LSB 10.6.1.1).
  std::optional<std::uint64_t> id;
  if (is_dwarf64 && format_ == CfiFormat::kDebugFrame)
    id = body->take<std::uint64_t>();
  else
    id = body->take<std::uint32_t>();
  if (!id)
    return std::nullopt;
  return Entry{offset, id_offset, *id, is_dwarf64, *body};
}

bool CfiEntries::is_cie(const Entry& entry) const noexcept {
  if (format_ == CfiFormat::kEhFrame)
    return entry.id == 0;
  return entry.id == (entry.is_dwarf64 ? std::numeric_limits<std::uint64_t>::max() : 0xffffffffU);
}

std::uint64_t CfiEntries::cie_offset(const Entry& fde) const noexcept {
  // The difference may wrap, and is then outside the section.
  return format_ == CfiFormat::kEhFrame ? fde.id_offset - fde.id : fde.id;
}

std::optional<Cie> CfiEntries::cie_at(std::uint64_t offset) const noexcept {
  auto entry = entry_at(offset);
  if (!entry || !is_cie(*entry))
    return std::nullopt;
  AddressedReader& in = entry->body;
  const auto version = in.take<std::uint8_t>();
  const auto augmentation = take_augmentation(in);
  if (!version || !augmentation || (*version != 1 && *version != 3 && *version != 4))
    return std::nullopt;
  if (*version == 4) {
    const auto address_bytes = in.take<std::uint8_t>();
    const auto segment_bytes = in.take<std::uint8_t>();
    if (address_bytes != 8 || segment_bytes != 0)
      return std::nullopt;
  }
  const auto code_alignment = read_uleb128(in);
  const auto data_alignment = read_sleb128(in);
  const auto return_register = take_register(in, *version);
  if (!code_alignment || !data_alignment || !return_register)
    return std::nullopt;
  Cie cie{.code_alignment = *code_alignment,
          .data_alignment = *data_alignment,
          .return_address_register = *return_register,
          .pointer_encoding = DW_EH_PE_absptr,
          .lsda_encoding = DW_EH_PE_omit,
          .has_augmentation_data = false,
          .is_signal_frame = false,
          .instructions = {}};
  if (!read_augmentation(in, *augmentation, cie) || in.left().size() > kMaxCieProgramBytes)
    return std::nullopt;
  cie.instructions = in.left();
  return cie;
}

std::optional<Fde> CfiEntries::parse_fde(const Entry& entry, const Cie& cie) const noexcept {
  AddressedReader in = entry.body;
  const auto start = read_pointer(in, cie.pointer_encoding, data_svma_);
  const auto bytes = read_pointer(in, cie.pointer_encoding & kPointerFormatMask, 0);
  if (!start || !bytes || *bytes == 0 ||
      *bytes > std::numeric_limits<std::uint64_t>::max() - *start)
    return std::nullopt;
  std::uint64_t lsda_svma = 0;
  if (cie.has_augmentation_data) {
    const auto size = read_uleb128(in);
    auto data = size ? in.take_part(*size) : std::nullopt;
    if (!data)
      return std::nullopt;
    lsda_svma = read_lsda(*data, cie.lsda_encoding, data_svma_);
  }
  if (in.left().size() > kMaxProgramBytes)
    return std::nullopt;
  return Fde{cie, *start, *bytes, in, lsda_svma};
}

std::optional<Fde> CfiEntries::fde_at(std::uint64_t offset) const noexcept {
  const auto entry = entry_at(offset);
  if (!entry || is_cie(*entry))
    return std::nullopt;
  const auto cie = cie_at(cie_offset(*entry));
  return cie ? parse_fde(*entry, *cie) : std::nullopt;
}

namespace {

constexpr std::uint8_t kSearchTableEncoding = DW_EH_PE_datarel | DW_EH_PE_sdata4;

std::int32_t number_at(Bytes bytes, std::size_t offset) noexcept {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

SearchTable read_table(AddressedReader& in, std::uint8_t count_encoding,
                       std::uint64_t data_svma) noexcept {
  const auto count = read_pointer(in, count_encoding, data_svma);
  if (!count)
    return {};
  const auto entries = std::min<std::uint64_t>(*count, in.left().size() / SearchTable::kPairBytes);
  return {in.left().first(static_cast<std::size_t>(entries) * SearchTable::kPairBytes), data_svma};
}

}  // namespace

std::optional<std::size_t> SearchTable::find(std::uint64_t svma) const noexcept {
  std::size_t low = 0;
  std::size_t high = size();
  const auto relative = static_cast<std::int64_t>(svma - data_svma_);
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (number_at(pairs_, middle * kPairBytes) <= relative)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 0 ? std::nullopt : std::optional(low - 1);
}

std::uint64_t SearchTable::fde_svma(std::size_t number) const noexcept {
  constexpr std::size_t kFdeAt = 4;
  const auto relative = std::int64_t{number_at(pairs_, number * kPairBytes + kFdeAt)};
  return data_svma_ + static_cast<std::uint64_t>(relative);
}

std::optional<EhFrameHeader> read_eh_frame_header(Bytes header, std::uint64_t svma) noexcept {
  AddressedReader in(header, svma);
  const auto version = in.take<std::uint8_t>();
  const auto frames_encoding = in.take<std::uint8_t>();
  const auto count_encoding = in.take<std::uint8_t>();
  const auto table_encoding = in.take<std::uint8_t>();
  if (version != 1 || !table_encoding)
    return std::nullopt;
  AddressedReader pointer = in;
  if (!skip_pointer(in, *frames_encoding))
    return std::nullopt;
  EhFrameHeader result{read_pointer(pointer, *frames_encoding, svma), {}};
  if (*table_encoding == kSearchTableEncoding)
    result.table = read_table(in, *count_encoding, svma);
  return result;
}

}  // namespace pe::unwind
