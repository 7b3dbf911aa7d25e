// SPDX-License-Identifier: MIT
#include "recording/bpf/packed_images.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>

#include "recording/bpf/kernel_rule.h"
#include "support/table_memory.h"

BOOST_AUTO_TEST_SUITE(table_packer)

namespace {

using pe::testing::look_up;
using pe::testing::TableMemory;
using pe::unwind::CodedRow;
using pe::unwind::FlatCodes;
using namespace pe::unwind;

constexpr std::uint32_t kNoLimit = WordPool::kMaxWords;

FlatCodes codes(std::uint64_t base_svma, std::vector<CodedRow> rows) {
  return {.base_svma = base_svma, .rows = std::move(rows)};
}

/// The number of the rule at `svma`, found in the rows themselves.
std::uint32_t expected(const FlatCodes& codes, std::uint64_t svma) {
  std::uint32_t code = kNumberOfNone;
  for (const CodedRow& row : codes.rows)
    if (codes.base_svma + row.offset <= svma)
      code = row.code;
  return code;
}

/// A packed table in words, mapped at its linked addresses.
struct Placed {
  Mapping mapping{};
  std::vector<std::uint32_t> words;
  std::uint32_t rows_at = 0;

  [[nodiscard]] std::uint32_t at(std::uint64_t svma) const {
    return look_up(mapping, svma,
                   [this](std::uint32_t number) { return words.at(number - rows_at); });
  }
};

Placed place(const PackedTable& table, CodeRange range, std::uint32_t rows_at) {
  Placed placed{.words = table.rows, .rows_at = rows_at};
  placed.words.insert(placed.words.end(), table.index.begin(), table.index.end());
  placed.mapping = {.start = range.start_svma,
                    .end = range.end_svma,
                    .base = table.base_svma,
                    .index = rows_at + static_cast<std::uint32_t>(table.rows.size()),
                    .rows = rows_at};
  return placed;
}

void check_all(const FlatCodes& codes, CodeRange range, std::uint32_t rows_at = 0) {
  const auto packed = pack(codes, range, rows_at, kNoLimit);
  BOOST_REQUIRE(packed);
  const Placed placed = place(*packed, range, rows_at);
  for (const CodedRow& row : codes.rows)
    for (const std::uint64_t svma : {codes.base_svma + row.offset - 1, codes.base_svma + row.offset,
                                     codes.base_svma + row.offset + 1})
      if (range.start_svma <= svma && svma < range.end_svma)
        BOOST_REQUIRE(placed.at(svma) == expected(codes, svma));
  for (std::uint64_t svma = range.start_svma; svma < range.end_svma; svma += 61)
    BOOST_REQUIRE(placed.at(svma) == expected(codes, svma));
  BOOST_REQUIRE(placed.at(range.end_svma - 1) == expected(codes, range.end_svma - 1));
}

/// One row for each byte.
FlatCodes dense(std::uint64_t base, std::uint32_t count) {
  FlatCodes made{.base_svma = base};
  for (std::uint32_t i = 0; i < count; ++i)
    made.rows.push_back({i, 2 + i % 7});
  return made;
}

}  // namespace

BOOST_AUTO_TEST_CASE(finds_each_row_from_its_first_byte_on) {
  check_all(codes(0x1000, {{0, 5}, {4, 6}, {0xff, 7}, {0x100, 8}, {0x101, 5}, {0x3f0, 0}}),
            {0x1000, 0x1400});
}

BOOST_AUTO_TEST_CASE(code_before_the_first_row_and_behind_the_last_has_no_rule) {
  const FlatCodes made = codes(0x1234, {{0, 5}, {0x10, 0}});
  const CodeRange range{0x1000, 0x2000};
  const Placed placed = place(*pack(made, range, 0, kNoLimit), range, 0);
  BOOST_TEST(placed.at(0x1000) == kNumberOfNone);
  BOOST_TEST(placed.at(0x1233) == kNumberOfNone);
  BOOST_TEST(placed.at(0x1234) == 5U);
  BOOST_TEST(placed.at(0x1244) == kNumberOfNone);
  BOOST_TEST(placed.at(0x1fff) == kNumberOfNone);
}

BOOST_AUTO_TEST_CASE(a_range_may_begin_inside_a_block_and_inside_a_row) {
  check_all(codes(0x1080, {{0, 5}, {0x200, 6}, {0x900, 0}}), {0x1123, 0x1777});
}

BOOST_AUTO_TEST_CASE(a_block_may_have_a_row_for_each_byte) {
  check_all(dense(0x1000, 0x300), {0x1000, 0x1300});
  check_all(dense(0x1001, 0x300), {0x1000, 0x1301});
}

BOOST_AUTO_TEST_CASE(blocks_of_one_row_share_it) {
  // One function of 16 MiB.
  const auto packed =
      pack(codes(0x1000, {{0, 5}, {0x1000000, 0}}), {0x1000, 0x1001000}, 0, kNoLimit);
  BOOST_REQUIRE(packed);
  BOOST_TEST(packed->index.size() == 0x10000U);
  BOOST_TEST(packed->rows.size() == 1U);
}

BOOST_AUTO_TEST_CASE(no_block_lies_across_two_chunks) {
  // look_up() checks this, for tables that start at many places near the end of a chunk.
  for (std::uint32_t before = 0; before < 600; before += 7)
    check_all(dense(0x1000, 0x400), {0x1000, 0x1400}, kChunkWords - before);
}

BOOST_AUTO_TEST_CASE(what_exceeds_the_words_is_refused) {
  const FlatCodes made = dense(0x1000, 0x100);
  BOOST_CHECK(pack(made, {0x1000, 0x1100}, 0, 0x101));
  BOOST_CHECK(!pack(made, {0x1000, 0x1100}, 0, 0x100));
  BOOST_CHECK(!pack(made, {0x1000, 0x1200}, 0, 0x101));
  BOOST_CHECK(!pack(made, {0x1000, 0x1100}, 0, 0));
  // More blocks than an index can have.
  BOOST_CHECK(!pack(made, {0x1000, std::uint64_t{1} << 40}, 0, kNoLimit));
}

BOOST_AUTO_TEST_CASE(ranges_that_make_no_sense_are_refused) {
  const FlatCodes made = dense(0x1000, 4);
  BOOST_CHECK(!pack(made, {0x1000, 0x1000}, 0, kNoLimit));
  BOOST_CHECK(!pack(made, {0x1100, 0x1000}, 0, kNoLimit));
  constexpr std::uint64_t kTop = ~std::uint64_t{0};
  BOOST_CHECK(!pack(made, {kTop - 100, kTop}, 0, kNoLimit));
  BOOST_CHECK(!pack(dense(kTop - 2, 4), {0x1000, 0x1100}, 0, kNoLimit));
}

BOOST_AUTO_TEST_CASE(made_up_rows_are_found) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto any = [&random](std::uint32_t below) {
      return static_cast<std::uint32_t>(random() % below);
    };
    FlatCodes made{.base_svma = 0x10000 + any(0x1000)};
    const std::uint32_t density = 1 + any(400);  // mean distance of rows
    std::uint32_t offset = 0;
    for (std::uint32_t i = any(300); i > 0; --i) {
      made.rows.push_back({offset, any(12)});
      offset += 1 + any(2 * density);
    }
    const std::uint64_t start = 0x10000 + any(0x2000);
    check_all(made, {start, start + 1 + any(offset + 0x1000)},
              any(2) == 0 ? 0 : kChunkWords - any(2000));
  }
}

BOOST_AUTO_TEST_CASE(words_go_on_in_the_next_chunk) {
  TableMemory memory;
  WordPool pool(memory, 2 * kChunkWords);
  std::vector<std::uint32_t> words(kChunkWords - 2, 7);
  BOOST_TEST(pool.append(words) == 0U);
  words = {1, 2, 3, 4};
  BOOST_TEST(pool.append(words) == kChunkWords - 2U);
  BOOST_TEST(pool.next() == kChunkWords + 2U);
  BOOST_TEST(pool.left() == kChunkWords - 2U);
  for (std::uint32_t i = 0; i < 4; ++i)
    BOOST_TEST(memory.word(kChunkWords - 2 + i) == i + 1);
  BOOST_TEST(memory.chunk_count() == 2U);
  BOOST_TEST(pool.append({}) == kChunkWords + 2U);
}

BOOST_AUTO_TEST_CASE(a_rule_has_one_number) {
  TableMemory memory;
  RuleNumbers numbers(memory);
  BOOST_TEST(numbers.size() == 2U);
  BOOST_TEST(memory.rule(kNumberOfUnsupported).kind == kRuleUnsupported);
  const RuleEntry first{.kind = kRuleStackPointer, .base = 0, .frame_pointer_slot = 0, .offset = 8};
  const std::uint32_t number = numbers.number_of(first);
  BOOST_TEST(number == 2U);
  RuleEntry other = first;
  other.offset = 16;
  BOOST_TEST(numbers.number_of(other) == 3U);
  BOOST_TEST(numbers.number_of(first) == number);
  BOOST_TEST(memory.rule(3).offset == 16);
}

BOOST_AUTO_TEST_CASE(rules_without_room_are_unsupported_and_counted) {
  TableMemory memory;
  RuleNumbers numbers(memory, 4);
  RuleEntry entry{.kind = kRuleStackPointer, .base = 0, .frame_pointer_slot = 0, .offset = 0};
  for (const std::uint32_t number : {2U, 3U, kNumberOfUnsupported, kNumberOfUnsupported}) {
    entry.offset += 8;
    BOOST_TEST(numbers.number_of(entry) == number);
  }
  BOOST_TEST(numbers.refused() == 2U);
}

BOOST_AUTO_TEST_CASE(one_file_cannot_take_all_rules) {
  TableMemory memory;
  RuleNumbers numbers(memory);
  RuleEntry entry{.kind = kRuleStackPointer, .base = 0, .frame_pointer_slot = 0, .offset = 0};
  numbers.begin_file();
  for (std::uint32_t i = 0; i < RuleNumbers::kMaxNewInFile + 5; ++i) {
    entry.offset += 8;
    numbers.number_of(entry);
  }
  BOOST_TEST(numbers.refused() == 5U);
  numbers.begin_file();
  BOOST_TEST(numbers.number_of(entry) != kNumberOfUnsupported);
}

BOOST_AUTO_TEST_SUITE_END()
