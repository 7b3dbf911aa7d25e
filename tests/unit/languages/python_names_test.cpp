// SPDX-License-Identifier: MIT
#include "languages/python/names.h"

#include <boost/test/unit_test.hpp>
#include <iterator>
#include <span>
#include <string_view>

#include "support/fake_python.h"

using namespace pe;
using namespace std::literals;
using languages::decode_lines;
using languages::LineTable;
using testing::FakePython;

BOOST_AUTO_TEST_SUITE(python_names)

namespace {

/// co_linetable of a function with loops, handlers, a comprehension and calls over several lines,
/// compiled by Python 3.11.2.
constexpr char kTable[] =
    "\x80\x00\xe0\x0c\x0d\x80\x45\xdd\x0d\x12\x90\x31\x89\x58\x8c\x58\xf0\x00\x06\x05"
    "\x14\xf0\x00\x06\x05\x14\x88\x01\xf0\x02\x05\x09\x14\xd8\x0c\x11\x90\x61\xe0\x16"
    "\x17\xf1\x05\x02\x17\x18\xf1\x00\x02\x0d\x19\x88\x45\x88\x45\xf8\xf5\x06\x00\x10"
    "\x1a\xf0\x00\x01\x09\x14\xf0\x00\x01\x09\x14\xf0\x00\x01\x09\x14\xd8\x12\x13\x88"
    "\x47\xf8\xf8\xf8\xf8\xf0\x03\x01\x09\x14\xf8\xf8\xf8\xe5\x09\x0d\x88\x63\x89\x19"
    "\x8c\x19\xf0\x00\x05\x05\x20\x90\x61\xd8\x0c\x11\x90\x41\x8a\x49\x88\x49\xd8\x14"
    "\x15\xf0\x03\x00\x0d\x16\xf0\x04\x02\x14\x20\xf0\x00\x02\x14\x20\xdd\x14\x19\xd8"
    "\x18\x1d\xf1\x03\x01\x15\x1f\xf4\x00\x01\x15\x1f\xf0\x03\x02\x14\x20\xf1\x00\x02"
    "\x14\x20\xf4\x00\x02\x14\x20\xf0\x07\x05\x05\x20\xf0\x00\x05\x05\x20\xf0\x00\x05"
    "\x05\x20\xf0\x00\x05\x05\x20\xf1\x00\x05\x05\x20\xf4\x00\x05\x05\x20\xf0\x00\x05"
    "\x05\x20\xf0\x00\x05\x05\x20\xf0\x00\x05\x05\x20\xf0\x00\x05\x05\x20\xf0\x00\x05"
    "\x05\x20\xf1\x00\x05\x05\x20\xf4\x00\x05\x05\x20\xf0\x00\x05\x05\x20\xf0\x00\x05"
    "\x05\x20\xf0\x00\x05\x05\x20\xf0\x00\x05\x05\x20\xf0\x00\x05\x05\x20\xf0\x00\x05"
    "\x05\x20\xf8\xf8\xf8\xf0\x00\x05\x05\x20\xf0\x00\x05\x05\x20\xf0\x00\x05\x05\x20"
    "\xf0\x00\x05\x05\x20\xf0\x68\x02\x00\x0c\x11\x80\x4c";

/// Its co_lines(): the offset where instructions end, and their line; 0: none.
struct Lines {
  std::uint32_t end, line;
};
constexpr Lines kLines[] = {{2, 1},    {6, 3},    {40, 4},   {42, 5},   {46, 6},   {48, 8},
                            {60, 6},   {62, 0},   {80, 9},   {84, 10},  {92, 0},   {94, 9},
                            {100, 0},  {132, 11}, {144, 12}, {146, 13}, {148, 12}, {152, 14},
                            {164, 15}, {166, 16}, {180, 15}, {196, 14}, {254, 11}, {260, 0},
                            {268, 11}, {272, 95}};

Bytes bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

BOOST_AUTO_TEST_CASE(lines_are_those_of_co_lines) {
  const LineTable table = decode_lines(bytes_of_text({kTable, std::size(kTable) - 1}), 1, 0);
  std::uint32_t offset = 0;
  for (const auto& [end, line] : kLines)
    for (; offset < end; ++offset)
      BOOST_TEST(table.line_at(offset) == line, "at " << offset);
  BOOST_TEST(table.line_at(offset) == 0U);
}

BOOST_AUTO_TEST_CASE(a_damaged_table_of_lines_ends_early) {
  const LineTable table = decode_lines(bytes_of_text("\xe8\x04\x11\xe8"sv), 10, 0);
  BOOST_TEST(table.line_at(0) == 12U);
  BOOST_TEST(table.line_at(2) == 12U);
  BOOST_TEST(table.line_at(4) == 0U);
  const LineTable none = decode_lines(bytes_of_text("\x11\xe8\x04"sv), 10, 0);
  BOOST_TEST(none.line_at(0) == 0U);
}

BOOST_AUTO_TEST_CASE(reads_text_of_every_width) {
  for (const auto version : {FakePython::k311, FakePython::k313}) {
    FakePython fake(version);
    const auto ascii = fake.ascii("main");
    const auto latin = fake.text<char>("caf\xe9", false);
    const auto two = fake.text<char16_t>(u"\u4e2d\xd800", false);
    const auto four = fake.text<char32_t>(U"\U0001f40d\x110000", false);
    auto memory = fake.memory();
    const auto read = [&](std::uint64_t text, std::size_t most = 100) {
      return languages::read_python_text(memory, fake.layout(), text, most).value_or("none");
    };
    BOOST_TEST(read(ascii) == "main");
    BOOST_TEST(read(ascii, 2) == "ma");
    BOOST_TEST(read(latin) == "caf\xc3\xa9");
    BOOST_TEST(read(two) == "\xe4\xb8\xad\xef\xbf\xbd");
    BOOST_TEST(read(four) == "\xf0\x9f\x90\x8d\xef\xbf\xbd");
    BOOST_TEST(read(FakePython::kNowhere) == "none");
  }
}

BOOST_AUTO_TEST_CASE(text_of_a_claimed_huge_length_is_cut) {
  FakePython fake(FakePython::k312);
  const auto text = fake.ascii("name");
  fake.room(8192);
  fake.put(text + fake.layout().text_length, ~std::uint64_t{0});
  auto memory = fake.memory();
  BOOST_TEST(languages::read_python_text(memory, fake.layout(), text, 4).value() == "name");
}

BOOST_AUTO_TEST_SUITE_END()
