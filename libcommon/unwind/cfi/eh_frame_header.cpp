// SPDX-License-Identifier: MIT
#include "unwind/cfi/eh_frame_header.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>

#include "unwind/cfi/pointer_encoding.h"

namespace pe::unwind {
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
