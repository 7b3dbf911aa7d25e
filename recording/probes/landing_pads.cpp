// SPDX-License-Identifier: MIT
#include "recording/probes/landing_pads.h"

#include <dwarf.h>

#include <optional>

namespace pe::unwind {

std::vector<std::uint64_t> read_landing_pads(AddressedReader table, std::uint64_t function) {
  std::vector<std::uint64_t> pads;
  const auto base_encoding = table.take<std::uint8_t>();
  if (base_encoding && *base_encoding != DW_EH_PE_omit) {
    const auto base = read_pointer(table, *base_encoding, 0);
    if (!base)
      return pads;
    function = *base;
  }
  const auto type_encoding = table.take<std::uint8_t>();
  if (type_encoding && *type_encoding != DW_EH_PE_omit && !read_uleb128(table))
    return pads;
  const auto encoding = table.take<std::uint8_t>();
  const auto bytes = encoding ? read_uleb128(table) : std::nullopt;
  auto entries = bytes ? table.take_part(*bytes) : std::nullopt;
  while (entries && !entries->left().empty()) {
    const auto number = [&] { return read_pointer(*entries, *encoding & kPointerFormatMask, 0); };
    const auto start = number(), length = number(), pad = number();
    const auto action = read_uleb128(*entries);
    if (!start || !length || !pad || !action)
      break;
    if (*pad != 0)
      pads.push_back(function + *pad);
  }
  return pads;
}

}  // namespace pe::unwind
