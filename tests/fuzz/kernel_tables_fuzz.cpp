// Packs any bytes, as an ELF image, into the tables of the kernel's unwinder.  Lookups there stay
// within the written words and agree with the image's own rows.
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "check_cfi.h"
#include "recording/bpf/kernel_rule.h"
#include "recording/bpf/packed_images.h"
#include "support/table_memory.h"
#include "unwind/cfi/unwind_table.h"

namespace {

using namespace pe;
using namespace pe::unwind;
using pe::testing::check;

/// The number of the row at `svma`, found in the rows themselves.
std::uint32_t number_at(const unwind::FlatCodes& codes, std::uint64_t svma) {
  const auto after = std::upper_bound(codes.rows.begin(), codes.rows.end(), svma,
                                      [&](std::uint64_t at, const unwind::CodedRow& row) {
                                        return at < codes.base_svma + row.offset;
                                      });
  return after == codes.rows.begin() ? kNumberOfNone : std::prev(after)->code;
}

void check_table(const unwind::FlatCodes& codes, CodeRange range, std::uint32_t rows_at) {
  constexpr std::uint32_t kMaxWords = 1U << 16;
  const auto packed = pack(codes, range, rows_at, kMaxWords);
  if (!packed)
    return;
  check(packed->rows.size() + packed->index.size() <= kMaxWords);
  const auto index_at = rows_at + static_cast<std::uint32_t>(packed->rows.size());
  const Mapping mapping{.start = range.start_svma,
                        .end = range.end_svma,
                        .base = packed->base_svma,
                        .index = index_at,
                        .rows = rows_at};
  const auto word = [&](std::uint32_t number) {
    const bool is_index = number >= index_at;
    const auto& words = is_index ? packed->index : packed->rows;
    const std::uint32_t at = number - (is_index ? index_at : rows_at);
    check(at < words.size());
    return words[at];
  };
  const auto look_at = [&](std::uint64_t svma) {
    if (range.start_svma <= svma && svma < range.end_svma)
      check(testing::look_up(mapping, svma, word) == number_at(codes, svma));
  };
  for (const unwind::CodedRow& row : codes.rows)
    for (const std::uint64_t beside : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}})
      look_at(codes.base_svma + row.offset + beside);
  for (std::uint64_t block = 0; block < packed->index.size(); ++block)
    look_at(packed->base_svma + (block << kBlockShift));
  look_at(range.start_svma);
  look_at(range.end_svma - 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  const auto opened = objects::Image::from_memory({data, data + size});
  const auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr)
    return 0;
  const unwind::UnwindTable table(*image);
  testing::TableMemory memory;
  RuleNumbers numbers(memory);
  const unwind::FlatCodes codes = table.flat_codes(
      [&](const unwind::CfiRow& row, bool is_signal_frame) {
        const RuleEntry entry = entry_of(row, is_signal_frame);
        const std::uint32_t number = numbers.number_of(entry);
        check(number == kNumberOfUnsupported || memory.rule(number) == entry);
        check(entry.kind != kRuleRegister || entry.base < 16);
        return number;
      },
      kNumberOfNone, kMaxFileWords);
  check(codes.rows.size() <= 2 * size + 2);
  if (codes.rows.empty())
    return 0;
  const std::uint64_t end = codes.base_svma + codes.rows.back().offset;
  // The range of the rows; then a larger range, packed near the end of a chunk.
  check_table(codes, {codes.base_svma, end}, 0);
  const std::uint64_t before = std::min<std::uint64_t>(codes.base_svma, 0x1234);
  check_table(codes, {codes.base_svma - before, end + 0x777}, kChunkWords - 100);
  return 0;
}
