// Reads any bytes as sections of call frame information.
//
// Input: one byte (bit 0: .debug_frame, bit 1: with .eh_frame_hdr), two bytes with the size of the
// header, the header, the section.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <optional>

#include "check_cfi.h"

namespace {

using pe::unwind::CfiFormat;
using pe::unwind::CfiSection;

constexpr std::uint64_t kSectionSvma = 0x20000;
constexpr std::uint64_t kHeaderSvma = 0x10000;

pe::objects::SectionBytes section_of(pe::Bytes bytes, std::uint64_t svma) {
  return {{bytes.begin(), bytes.end()}, svma};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  pe::ByteReader in(pe::Bytes(data, size));
  const auto flags = in.take<std::uint8_t>();
  const auto header_bytes = in.take<std::uint16_t>();
  if (!header_bytes)
    return 0;
  const auto header = in.take_bytes(std::min<std::size_t>(*header_bytes, in.left().size()));
  const auto format = (*flags & 1) != 0 ? CfiFormat::kDebugFrame : CfiFormat::kEhFrame;
  const CfiSection section(
      format, section_of(in.left(), kSectionSvma),
      (*flags & 2) != 0 ? std::optional(section_of(*header, kHeaderSvma)) : std::nullopt);
  pe::testing::check_index(section);
  pe::unwind::UnwindTable table(section);
  pe::testing::check_rules(table, {&section, 1});
  return 0;
}
