// SPDX-License-Identifier: MIT
#include "unwind/cfi/unwind_table.h"

#include <elf.h>
#include <boost/test/unit_test.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "objects/mapped_image.h"
#include "support/cfi_builder.h"
#include "support/flat_rules.h"
#include "support/test_binary.h"

BOOST_AUTO_TEST_SUITE(unwind_table)

namespace {

using pe::testing::CfiBuilder;
using pe::testing::code;
using pe::testing::flat_rules;
using pe::testing::test_binary;
using namespace pe::unwind;

constexpr Rule kFirst(RuleKind::kStackPointer, 1);
constexpr Rule kPushed(RuleKind::kStackPointer, 2);
constexpr Rule kNothing(RuleKind::kNone);
const std::string kPushAt4 = code({DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16});

UnwindTable table_of(const CfiBuilder& builder) {
  return UnwindTable(CfiSection(CfiFormat::kEhFrame, builder.section()));
}

pe::objects::Image opened(pe::objects::OpenResult result) {
  BOOST_REQUIRE(std::holds_alternative<pe::objects::Image>(result));
  return std::move(std::get<pe::objects::Image>(result));
}

/// An image as sstrip(1) leaves it, except that bytes outside of all segments remain.
std::vector<std::byte> without_section_headers(const char* name) {
  auto bytes = pe::testing::bytes_of_file(test_binary(name));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.e_shoff = 0;
  header.e_shnum = header.e_shstrndx = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(gives_the_rule_of_the_row_that_covers_an_address) {
  CfiBuilder builder(0x20000);
  builder.cie({});
  builder.fde(0x1000, 0x20, kPushAt4);
  builder.fde(0x1020, 0x10);
  UnwindTable table = table_of(builder);
  BOOST_TEST(table.has_rules());
  BOOST_CHECK(table.rule(0xfff) == kNothing);
  BOOST_CHECK(table.rule(0x1003) == kFirst);
  BOOST_CHECK(table.rule(0x1004) == kPushed);
  BOOST_CHECK(table.rule(0x101f) == kPushed);
  BOOST_CHECK(table.rule(0x1020) == kFirst);
  BOOST_CHECK(table.rule(0x1030) == kNothing);
}

BOOST_AUTO_TEST_CASE(compiles_a_function_when_it_is_asked_for_and_once) {
  CfiBuilder builder(0x20000);
  builder.cie({});
  builder.fde(0x1000, 0x20, kPushAt4);
  builder.fde(0x2000, 0x20, kPushAt4);
  UnwindTable table = table_of(builder);
  BOOST_TEST(table.statistics().functions_compiled == 0U);
  table.rule(0x1000);
  table.rule(0x1010);
  BOOST_TEST(table.statistics().functions_compiled == 1U);
  BOOST_TEST(table.statistics().rows == 2U);
}

BOOST_AUTO_TEST_CASE(rows_that_say_the_same_are_one) {
  CfiBuilder builder(0x20000);
  builder.cie({});
  // Saving rbx changes no rule.
  builder.fde(0x1000, 0x20, code({DW_CFA_advance_loc | 4, DW_CFA_offset | 3, 2}));
  UnwindTable table = table_of(builder);
  BOOST_CHECK(table.rule(0x1010) == kFirst);
  BOOST_TEST(table.statistics().rows == 1U);
  const auto full = table.full_row(0x1010);
  BOOST_REQUIRE(full);
  BOOST_TEST(full->row.registers[3].offset == -16);
  BOOST_CHECK(table.full_row(0x1003)->row.registers[3].kind == RegisterRule::Kind::kSameValue);
  BOOST_CHECK(!table.full_row(0x1020));
}

BOOST_AUTO_TEST_CASE(a_damaged_program_covers_what_came_before_the_damage) {
  CfiBuilder builder(0x20000);
  builder.cie({});
  builder.fde(0x1000, 0x20, kPushAt4 + code({DW_CFA_advance_loc | 4, 0x3f}));
  UnwindTable table = table_of(builder);
  BOOST_CHECK(table.rule(0x1007) == kPushed);
  BOOST_CHECK(table.rule(0x1008) == kNothing);
  BOOST_TEST(table.statistics().functions_refused == 1U);
}

// Nothing can interrupt a program, so its length is limited (Fde::kMaxProgramBytes).
BOOST_AUTO_TEST_CASE(a_program_of_very_many_instructions_has_no_rules) {
  CfiBuilder builder(0x20000);
  builder.cie({});
  builder.fde(0x1000, 0x20, kPushAt4 + std::string(std::size_t{300} << 10, DW_CFA_nop));
  builder.fde(0x2000, 0x20, kPushAt4);
  UnwindTable table = table_of(builder);
  BOOST_CHECK(table.rule(0x1007) == kNothing);
  BOOST_CHECK(!table.full_row(0x1007));
  BOOST_CHECK(table.rule(0x2007) == kPushed);
}

BOOST_AUTO_TEST_CASE(flat_rules_cover_gaps_and_the_end_with_none) {
  CfiBuilder builder(0x20000);
  builder.cie({});
  builder.fde(0x1000, 0x20, kPushAt4);
  builder.fde(0x1040, 0x10);
  builder.fde(0x1050, 0x10);
  const FlatCodes flat = flat_rules(table_of(builder));
  BOOST_TEST(flat.base_svma == 0x1000U);
  BOOST_TEST(flat.functions == 3U);
  const std::vector<CodedRow> expected = {{0, kFirst.bits()},
                                          {4, kPushed.bits()},
                                          {0x20, kNothing.bits()},
                                          {0x40, kFirst.bits()},
                                          {0x60, kNothing.bits()}};
  BOOST_CHECK(flat.rows == expected);
}

BOOST_AUTO_TEST_CASE(flat_rules_leave_out_what_overlaps_or_is_too_far) {
  CfiBuilder builder(0x20000);
  builder.cie({.pointer_encoding = DW_EH_PE_absptr});
  builder.fde(0x1000, 0x20);
  builder.fde(0x1010, 0x20, kPushAt4);
  builder.fde(0x2'0000'0000, 0x20);
  const FlatCodes flat = flat_rules(table_of(builder));
  BOOST_TEST(flat.functions == 1U);
  BOOST_TEST(flat.left_out == 2U);
  BOOST_TEST(flat.rows.size() == 2U);
}

BOOST_AUTO_TEST_CASE(flat_rules_are_the_rules) {
  const auto image = opened(pe::objects::Image::open(test_binary("libfunctions.so")));
  UnwindTable table(image);
  const FlatCodes flat = flat_rules(table);
  BOOST_REQUIRE(flat.rows.size() > 4U);
  for (std::size_t i = 0; i + 1 < flat.rows.size(); ++i)
    for (std::uint64_t at = flat.rows[i].offset; at < flat.rows[i + 1].offset; ++at)
      BOOST_REQUIRE(table.rule(flat.base_svma + at).bits() == flat.rows[i].code);
}

BOOST_AUTO_TEST_CASE(flat_codes_are_what_another_makes_of_the_rows) {
  CfiBuilder builder(0x20000);
  builder.cie({});
  // The rows CFA = rbx + 8 and CFA = r12 + 8, which no rule can express, become one row of
  // kGeneral.
  builder.fde(0x1000, 0x20,
              code({DW_CFA_advance_loc | 4, DW_CFA_def_cfa, 3, 8, DW_CFA_advance_loc | 4,
                    DW_CFA_def_cfa_register, 12}));
  builder.fde(0x1040, 0x10);
  const UnwindTable table = table_of(builder);
  BOOST_TEST(flat_rules(table).rows.size() == 5U);
  const FlatCodes flat = table.flat_codes(
      [](const CfiRow& row, bool) { return static_cast<std::uint32_t>(row.cfa.register_number); },
      99, 100);
  const std::vector<CodedRow> expected = {{0, 7},     {4, 3},    {8, 12},
                                          {0x20, 99}, {0x40, 7}, {0x50, 99}};
  BOOST_CHECK(flat.rows == expected);
  BOOST_TEST(flat.base_svma == 0x1000U);
}

// All functions share one entry, and each of them executes its instructions: this work has a limit.
BOOST_AUTO_TEST_CASE(flat_rules_do_no_more_than_the_section_is_worth) {
  constexpr std::size_t kFunctions = 300;
  CfiBuilder builder(0x20000);
  builder.cie({.instructions = pe::testing::usual_start() + std::string(4'000, '\0')});
  for (std::size_t i = 0; i < kFunctions; ++i)
    builder.fde(0x1000 + 0x10 * i, 0x10);
  const FlatCodes flat = flat_rules(table_of(builder));
  BOOST_TEST(flat.functions > 0U);
  BOOST_TEST(flat.functions < kFunctions);
  BOOST_TEST(flat.functions + flat.left_out == kFunctions);
}

BOOST_AUTO_TEST_CASE(flat_codes_stop_at_as_many_rows_as_are_wanted) {
  CfiBuilder builder(0x20000);
  builder.cie({});
  for (std::uint64_t i = 0; i < 10; ++i)
    builder.fde(0x1000 + 0x20 * i, 0x10);
  const FlatCodes flat = table_of(builder).flat_codes([](const CfiRow&, bool) { return 1U; }, 0, 4);
  BOOST_TEST(flat.functions == 3U);
  BOOST_TEST(flat.left_out == 7U);
}

BOOST_AUTO_TEST_CASE(a_scan_finds_what_the_search_table_has) {
  const auto image = opened(pe::objects::Image::open(test_binary("libfunctions.so")));
  const auto frames = image.section_bytes(".eh_frame");
  BOOST_REQUIRE(frames);
  UnwindTable scanned(CfiSection(CfiFormat::kEhFrame, *frames));
  UnwindTable searched(image);
  BOOST_CHECK(flat_rules(scanned).rows == flat_rules(searched).rows);
}

BOOST_AUTO_TEST_CASE(functions_in_debug_frame_have_rules_beside_those_in_eh_frame) {
  const auto image = opened(pe::objects::Image::open(test_binary("debug_frame")));
  UnwindTable table(image);
  const auto sections = CfiSection::all_of(image);
  BOOST_REQUIRE(sections.size() == 2U);
  std::size_t functions = 0;
  for (const CfiSection& section : sections) {
    BOOST_TEST(section.fde_count() > 0U);
    functions += section.fde_count();
    for (std::size_t number = 0; number < section.fde_count(); ++number) {
      const auto start = section.fde(number)->start_svma;
      BOOST_CHECK(table.rule(start) != kNothing);
      BOOST_CHECK(table.full_row(start).has_value());
    }
  }
  const FlatCodes flat = flat_rules(table);
  BOOST_TEST(flat.functions == functions);
  BOOST_TEST(flat.left_out == 0U);
  for (const CodedRow& row : flat.rows)
    BOOST_CHECK(table.rule(flat.base_svma + row.offset).bits() == row.code);
}

BOOST_AUTO_TEST_CASE(compressed_debug_frame_is_read) {
  const auto rules_of = [](const char* name) {
    return flat_rules(UnwindTable(opened(pe::objects::Image::open(test_binary(name)))));
  };
  const auto image = opened(pe::objects::Image::open(test_binary("debug_frame_compressed")));
  constexpr std::uint64_t kCompressed = 1U << 11;  // SHF_COMPRESSED
  BOOST_TEST((image.section(".debug_frame")->flags & kCompressed) != 0U);
  const FlatCodes plain = rules_of("debug_frame");
  const FlatCodes compressed = rules_of("debug_frame_compressed");
  BOOST_TEST(compressed.functions == plain.functions);
  BOOST_CHECK(compressed.rows == plain.rows);
}

BOOST_AUTO_TEST_CASE(an_image_without_section_headers_has_the_same_rules) {
  const auto bytes = without_section_headers("libfunctions.so");
  const UnwindTable whole(opened(pe::objects::Image::open(test_binary("libfunctions.so"))));
  const auto image = opened(pe::objects::Image::from_memory(bytes));
  BOOST_REQUIRE(image.sections().empty());
  const UnwindTable stripped(image);
  BOOST_TEST(stripped.has_rules());
  BOOST_CHECK(flat_rules(stripped).rows == flat_rules(whole).rows);
}

BOOST_AUTO_TEST_CASE(without_section_headers_eh_frame_is_scanned_if_its_header_has_no_table) {
  auto bytes = without_section_headers("libfunctions.so");
  const auto header = *opened(pe::objects::Image::from_memory(bytes)).eh_frame_header();
  const UnwindTable searched(opened(pe::objects::Image::from_memory(bytes)));
  bytes[header.file_offset + 3] = std::byte{DW_EH_PE_omit};
  const UnwindTable scanned(opened(pe::objects::Image::from_memory(bytes)));
  BOOST_CHECK(flat_rules(scanned).rows == flat_rules(searched).rows);
}

BOOST_AUTO_TEST_CASE(an_eh_frame_header_that_points_nowhere_gives_no_rules) {
  auto bytes = without_section_headers("libfunctions.so");
  const auto header = *opened(pe::objects::Image::from_memory(bytes)).eh_frame_header();
  const auto has_rules = [&] {
    return UnwindTable(opened(pe::objects::Image::from_memory(bytes))).has_rules();
  };
  // the bytes of the pointer, of its encoding, of the version
  for (const std::size_t offset : {7U, 1U, 0U}) {
    std::byte& byte = bytes[header.file_offset + offset];
    const std::byte before = byte;
    byte = std::byte{0x70};
    BOOST_TEST(!has_rules());
    byte = before;
  }
  BOOST_TEST(has_rules());
}

BOOST_AUTO_TEST_CASE(knows_where_the_file_was_linked_to) {
  const auto image = opened(pe::objects::Image::open(test_binary("libfunctions.so")));
  const UnwindTable table(image);
  const auto* text = image.section(".text");
  BOOST_CHECK(table.svma_of_mapping(text->file_offset) == text->svma);
}

BOOST_AUTO_TEST_CASE(the_vdso_has_rules_too) {
  const auto vdso = pe::objects::own_vdso();
  if (std::holds_alternative<pe::objects::OpenFailure>(vdso)) {
    BOOST_TEST_MESSAGE("no vdso here");
    return;
  }
  const UnwindTable table(std::get<pe::objects::Image>(vdso));
  BOOST_TEST(table.has_rules());
  BOOST_TEST(flat_rules(table).rows.size() > 2U);
}

BOOST_AUTO_TEST_CASE(images_without_unwind_information_have_no_rules) {
  for (const char* name : {"labels.so", "labels_32.so"}) {
    UnwindTable table(opened(pe::objects::Image::open(test_binary(name))));
    BOOST_TEST(!table.has_rules());
    BOOST_CHECK(table.rule(0x1000) == kNothing);
    BOOST_TEST(flat_rules(table).rows.empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
