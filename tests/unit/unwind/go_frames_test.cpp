// SPDX-License-Identifier: MIT
#include "unwind/walk/go_frames.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "support/go_table.h"
#include "unwind/cfi/expression.h"
#include "unwind/cfi/unwind_table.h"

BOOST_AUTO_TEST_SUITE(frames_of_go)

namespace {

using pe::testing::go_table;
using pe::testing::GoFunction;
using namespace pe::unwind;

constexpr std::uint64_t kText = 0x401000;

std::vector<std::byte> frames_of(const std::string& table, std::uint64_t text_svma = kText) {
  return go_frames(std::as_bytes(std::span(table)), text_svma);
}

UnwindTable table_of(const std::string& table) {
  return UnwindTable(CfiSection(CfiFormat::kDebugFrame, {frames_of(table), 0}));
}

/// No frame for 4 bytes, a frame of 24 bytes for 0x10 bytes, no frame for the last byte.
const std::string kPairs("\x02\x04\x30\x10\x2f\x01\0", 7);

std::string some_table(bool has_lines = true) {
  return go_table({{0, "main.work", 0, kPairs},
                   {0x20, "runtime.goexit", 5, std::string("\x02\x20\0", 3)},
                   {0x40, "runtime.systemstack", 6, std::string("\x02\x20\0", 3)},
                   {0x60, "runtime.mcall", 6, std::string("\x02\x20\0", 3)},
                   {0x80, "runtime.sigreturn__sigaction", 4, std::string("\x02\x20\0", 3)}},
                  0xa0, 0, has_lines);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_distance_of_the_stack_pointer_becomes_rules) {
  for (const bool has_lines : {false, true}) {
    UnwindTable table = table_of(some_table(has_lines));
    for (const std::uint64_t at : {0U, 3U, 0x14U})
      BOOST_CHECK(table.rule(kText + at) == Rule(RuleKind::kStackPointer, 1));
    for (const std::uint64_t at : {4U, 0x13U})
      BOOST_CHECK(table.rule(kText + at) == Rule(RuleKind::kStackPointer, 4, 2));
    BOOST_CHECK(table.rule(kText - 1).kind() == RuleKind::kNone);
    BOOST_CHECK(table.rule(kText + 0xa0).kind() == RuleKind::kNone);
  }
}

BOOST_AUTO_TEST_CASE(a_stack_ends_at_its_first_function_and_where_its_goroutine_has_left) {
  UnwindTable table = table_of(some_table());
  for (const std::uint64_t function : {0x20U, 0x60U, 0x80U})
    BOOST_CHECK(table.rule(kText + function + 3) == Rule(RuleKind::kEnd));
}

BOOST_AUTO_TEST_CASE(where_the_stack_pointer_is_loaded_the_frame_pointer_leads_to_the_other_stack) {
  const UnwindTable table = table_of(some_table());
  const auto full = table.full_row(kText + 0x48);
  BOOST_REQUIRE(full);
  const auto at = [&](unsigned number) {
    return simple_expression(full->row.registers[number].expression);
  };
  const auto by_frame_pointer = [](std::int64_t offset) {
    return SimpleExpression{.register_number = architecture::kFramePointer, .offset = offset};
  };
  BOOST_CHECK(at(architecture::kInstructionPointer) == by_frame_pointer(8));
  BOOST_CHECK(at(architecture::kFramePointer) == by_frame_pointer(0));
  BOOST_CHECK(at(architecture::kStackPointer) == by_frame_pointer(16));
}

BOOST_AUTO_TEST_CASE(the_tables_own_start_of_the_code_comes_first) {
  const std::string table = go_table({{0, "main.work", 0, kPairs}}, 0x20, 0x700000);
  UnwindTable rules = table_of(table);
  BOOST_CHECK(rules.rule(0x700000) == Rule(RuleKind::kStackPointer, 1));
  BOOST_CHECK(rules.rule(kText).kind() == RuleKind::kNone);
}

BOOST_AUTO_TEST_CASE(damaged_tables_give_what_can_be_read) {
  const std::string whole = some_table();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto frames = frames_of(whole.substr(0, size));
    BOOST_TEST(frames.size() <= frames_of(whole).size());
  }
  std::string other = whole;
  other[0] = '\xfb';  // the magic number of Go 1.2
  BOOST_TEST(frames_of(other).empty());
  BOOST_TEST(frames_of(whole, ~std::uint64_t{0}).empty());
  // The first pairs have a frame of 2 GiB; the second never end.
  UnwindTable huge =
      table_of(go_table({{0, "f", 0, "\x02\x04" + std::string("\xfe\xff\xff\xff\x0f\x04\0", 7)},
                         {0x20, "g", 0, "\x02\x80\x80\x80\x80\x80\x80"}},
                        0x40, 0));
  BOOST_CHECK(huge.rule(kText + 3) == Rule(RuleKind::kStackPointer, 1));
}

BOOST_AUTO_TEST_SUITE_END()
