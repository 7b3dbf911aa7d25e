// SPDX-License-Identifier: MIT
#include "unwind/cfi/cfi_program.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/cfi_builder.h"

BOOST_AUTO_TEST_SUITE(cfi_program)

namespace {

using pe::testing::CfiBuilder;
using pe::testing::code;
using namespace pe::unwind;
using Kind = RegisterRule::Kind;

constexpr std::uint64_t kStart = 0x1000;
constexpr std::uint64_t kBytes = 100;

/// The rows of a function of 100 bytes, after all of its instructions.
struct Table {
  struct Row {
    std::uint64_t from, to;
    CfiRow row;
  };
  std::vector<Row> rows;
  bool is_damaged = false;
};

Table table_of(const std::string& instructions, const CfiBuilder::Cie& cie = {}) {
  CfiBuilder builder(0x20000);
  builder.cie(cie);
  builder.fde(kStart, kBytes, instructions);
  const CfiSection section(CfiFormat::kEhFrame, builder.section());
  const auto fde = section.fde(0);
  BOOST_REQUIRE(fde);
  CfiProgram program(*fde);
  Table table;
  while (program.next())
    table.rows.push_back({program.from(), program.to(), program.row()});
  table.is_damaged = program.is_damaged();
  return table;
}

/// The only row of a function; the test fails if there are more.
CfiRow only_row(const std::string& instructions) {
  const Table table = table_of(instructions);
  BOOST_REQUIRE(!table.is_damaged);
  BOOST_REQUIRE(table.rows.size() == 1U);
  BOOST_TEST(table.rows[0].to == kBytes);
  return table.rows[0].row;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_function_without_instructions_inherits_the_row_of_its_cie) {
  const CfiRow row = only_row("");
  BOOST_TEST(row.cfa.register_number == 7U);
  BOOST_TEST(row.cfa.offset == 8);
  BOOST_CHECK(row.registers[16].kind == Kind::kOffset);
  BOOST_TEST(row.registers[16].offset == -8);
  BOOST_CHECK(row.registers[6].kind == Kind::kSameValue);
}

BOOST_AUTO_TEST_CASE(each_advance_ends_a_row) {
  const Table table = table_of(code({DW_CFA_advance_loc | 1,
                                     DW_CFA_def_cfa_offset,
                                     16,
                                     DW_CFA_offset | 6,
                                     2,
                                     DW_CFA_advance_loc1,
                                     3,
                                     DW_CFA_def_cfa_register,
                                     6,
                                     DW_CFA_advance_loc2,
                                     10,
                                     0,
                                     DW_CFA_restore | 6,
                                     DW_CFA_def_cfa,
                                     7,
                                     8,
                                     DW_CFA_advance_loc4,
                                     20,
                                     0,
                                     0,
                                     0}));
  BOOST_REQUIRE(table.rows.size() == 5U);
  BOOST_TEST(table.rows[0].from == 0U);
  BOOST_TEST(table.rows[1].from == 1U);
  BOOST_TEST(table.rows[1].row.cfa.offset == 16);
  BOOST_TEST(table.rows[1].row.registers[6].offset == -16);
  BOOST_TEST(table.rows[2].from == 4U);
  BOOST_TEST(table.rows[2].row.cfa.register_number == 6U);
  BOOST_TEST(table.rows[3].from == 14U);
  BOOST_CHECK(table.rows[3].row.registers[6].kind == Kind::kSameValue);
  BOOST_TEST(table.rows[4].from == 34U);
  BOOST_TEST(table.rows[4].to == kBytes);
}

BOOST_AUTO_TEST_CASE(advances_count_in_units_of_code) {
  const Table table = table_of(code({DW_CFA_advance_loc | 2}), {.code_alignment = 4});
  BOOST_REQUIRE(table.rows.size() == 2U);
  BOOST_TEST(table.rows[1].from == 8U);
}

BOOST_AUTO_TEST_CASE(set_loc_moves_to_an_address) {
  CfiBuilder builder(0x20000);
  builder.cie({.pointer_encoding = DW_EH_PE_absptr});
  std::string program = code({DW_CFA_set_loc});
  program += pe::bytes_of(kStart + 50);
  builder.fde(kStart, kBytes, program);
  const CfiSection section(CfiFormat::kEhFrame, builder.section());
  CfiProgram run(section.fde(0).value());
  BOOST_TEST(run.next());
  BOOST_TEST(run.to() == 50U);
}

BOOST_AUTO_TEST_CASE(every_way_to_save_a_register) {
  const CfiRow row = only_row(code({DW_CFA_offset_extended,
                                    3,
                                    2,
                                    DW_CFA_offset_extended_sf,
                                    12,
                                    0x7d,
                                    DW_CFA_val_offset,
                                    13,
                                    1,
                                    DW_CFA_val_offset_sf,
                                    14,
                                    0x7f,
                                    DW_CFA_register,
                                    15,
                                    2,
                                    DW_CFA_same_value,
                                    6,
                                    DW_CFA_undefined,
                                    16,
                                    DW_CFA_GNU_negative_offset_extended,
                                    8,
                                    2,
                                    DW_CFA_offset | 33,
                                    9,
                                    DW_CFA_expression,
                                    9,
                                    2,
                                    DW_OP_breg7,
                                    0,
                                    DW_CFA_val_expression,
                                    10,
                                    1,
                                    DW_OP_lit5}));
  BOOST_TEST(row.registers[3].offset == -16);
  BOOST_TEST(row.registers[12].offset == 24);
  BOOST_CHECK(row.registers[13].kind == Kind::kValueOffset);
  BOOST_TEST(row.registers[13].offset == -8);
  BOOST_TEST(row.registers[14].offset == 8);
  BOOST_CHECK(row.registers[15].kind == Kind::kRegister);
  BOOST_TEST(row.registers[15].offset == 2);
  BOOST_CHECK(row.registers[16].kind == Kind::kUndefined);
  BOOST_TEST(row.registers[8].offset == 16);
  BOOST_CHECK(row.registers[9].kind == Kind::kExpression);
  BOOST_TEST(row.registers[9].expression.size() == 2U);
  BOOST_CHECK(row.registers[10].kind == Kind::kValue);
}

BOOST_AUTO_TEST_CASE(every_way_to_define_the_cfa) {
  BOOST_TEST(only_row(code({DW_CFA_def_cfa_sf, 6, 0x7e})).cfa.offset == 16);
  BOOST_TEST(only_row(code({DW_CFA_def_cfa_offset_sf, 0x7d})).cfa.offset == 24);
  const CfiRow row = only_row(code({DW_CFA_def_cfa_expression, 2, DW_OP_breg6, 0}));
  BOOST_TEST(row.cfa.is_expression);
  BOOST_TEST(row.cfa.expression.size() == 2U);
  BOOST_TEST(
      !only_row(code({DW_CFA_def_cfa_expression, 1, 0, DW_CFA_def_cfa, 7, 8})).cfa.is_expression);
}

BOOST_AUTO_TEST_CASE(remembered_states_nest) {
  const Table table =
      table_of(code({DW_CFA_remember_state, DW_CFA_def_cfa_offset, 16, DW_CFA_remember_state,
                     DW_CFA_def_cfa_offset, 24, DW_CFA_advance_loc | 1, DW_CFA_restore_state,
                     DW_CFA_advance_loc | 1, DW_CFA_restore_state}));
  BOOST_REQUIRE(table.rows.size() == 3U);
  BOOST_TEST(table.rows[0].row.cfa.offset == 24);
  BOOST_TEST(table.rows[1].row.cfa.offset == 16);
  BOOST_TEST(table.rows[2].row.cfa.offset == 8);
}

BOOST_AUTO_TEST_CASE(args_size_changes_nothing) {
  BOOST_TEST(only_row(code({DW_CFA_GNU_args_size, 0x90, 1})).cfa.offset == 8);
}

BOOST_AUTO_TEST_CASE(rows_before_an_instruction_that_makes_no_sense_hold) {
  const std::string good = code({DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16});
  for (const std::string& bad :
       {code({0x3f}), code({DW_CFA_restore_state}), code({DW_CFA_def_cfa, 7}),
        code({DW_CFA_expression, 3, 9, 1}), code({DW_CFA_def_cfa_offset, 0x80}),
        std::string(CfiProgram::kMaxRememberedStates + 1, DW_CFA_remember_state)}) {
    const Table table = table_of(good + bad);
    BOOST_TEST(table.is_damaged);
    BOOST_REQUIRE(table.rows.size() == 1U);
    BOOST_TEST(table.rows[0].to == 4U);
  }
}

BOOST_AUTO_TEST_CASE(rows_end_with_their_function) {
  const Table table =
      table_of(code({DW_CFA_advance_loc1, 200, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 1}));
  BOOST_REQUIRE(table.rows.size() == 1U);
  BOOST_TEST(table.rows[0].to == kBytes);
  BOOST_TEST(!table.is_damaged);
}

BOOST_AUTO_TEST_CASE(a_return_address_in_another_register_is_refused) {
  const Table table = table_of("", {.return_register = 8});
  BOOST_TEST(table.is_damaged);
  BOOST_TEST(table.rows.empty());
}

BOOST_AUTO_TEST_SUITE_END()
