// Any bytes as sections of call frame information: what is found covers what was asked for, and
// rules come from rows.
//
// Input: one byte (bit 0: .debug_frame, bit 1: with .eh_frame_hdr), two bytes of the header's size,
// the header, the section.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "unwind/unwind_table.h"

namespace {

using namespace pe::unwind;

constexpr std::uint64_t kSectionSvma = 0x20000;
constexpr std::uint64_t kHeaderSvma = 0x10000;
constexpr std::size_t kMaxFdes = 64;

pe::elf::SectionBytes section_of(pe::Bytes bytes, std::uint64_t svma) {
  return {{bytes.begin(), bytes.end()}, svma};
}

void check(bool holds) {
  if (!holds)
    std::abort();
}

void check_index(const CfiSection& section) {
  std::uint64_t last_start = 0;
  for (std::size_t number = 0; number < std::min(section.fde_count(), kMaxFdes); ++number) {
    const auto fde = section.fde(number);
    if (section.has_search_table())
      continue;  // it may say anything
    check(fde.has_value());
    check(fde->start_svma >= last_start);
    last_start = fde->start_svma;
    const auto found = section.find(fde->start_svma);
    check(found && section.fde(*found)->start_svma == fde->start_svma);
  }
}

void check_rules(const CfiSection& section) {
  UnwindTable table(section);
  for (std::size_t number = 0; number < std::min(section.fde_count(), kMaxFdes); ++number) {
    const auto fde = section.fde(number);
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{99}}) {
      const std::uint64_t svma = (fde ? fde->start_svma : kSectionSvma) + offset;
      const Rule rule = table.rule(svma);
      if (rule.kind() != RuleKind::kNone)
        check(table.full_row(svma).has_value());
      check(table.rule(svma) == rule);
    }
  }
  const FlatRules flat = table.flat_rules();
  check(flat.functions + flat.left_out <= section.fde_count());
  check(std::is_sorted(flat.rows.begin(), flat.rows.end(),
                       [](const RuleRow& a, const RuleRow& b) { return a.offset < b.offset; }));
  check(flat.rows.size() <= 2 * section.size_bytes() + 2);
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
  check_index(section);
  check_rules(section);
  return 0;
}
