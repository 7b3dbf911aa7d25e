// SPDX-License-Identifier: MIT
#include "folded/folded_line.h"

#include <boost/test/unit_test.hpp>
#include <string>

using pe::folded::Columns;
using pe::folded::Count;
using pe::folded::parse_folded_line;

namespace {

/// `line` parsed and printed again; empty if the parser refuses it.
std::string reprinted(std::string_view line) {
  std::string out;
  if (const auto folded = parse_folded_line(line))
    append_folded_line(out, *folded);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(folded_line)

BOOST_AUTO_TEST_CASE(splits_at_the_last_blank) {  // frame names can contain blanks
  const auto line = parse_folded_line("main;operator new(unsigned long) 42");
  BOOST_REQUIRE(line);
  BOOST_TEST(line->stack == "main;operator new(unsigned long)");
  BOOST_TEST((line->count == Count{.whole = 42}));
}

BOOST_AUTO_TEST_CASE(takes_what_dos_editors_and_awk_leave_behind) {
  for (const char* line : {"a;b 7\r", "a;b 7 ", "a;b 7\t\r", "a;b   7", "a;b\t7", "a;b \t 7"})
    BOOST_TEST(reprinted(line) == "a;b 7\n", line);
}

BOOST_AUTO_TEST_CASE(keeps_fractions_exactly) {
  BOOST_TEST(reprinted("a 12.5") == "a 12.5\n");
  BOOST_TEST(reprinted("a 12.") == "a 12\n");
  BOOST_TEST(reprinted("a 0.000000001") == "a 0.000000001\n");
  BOOST_TEST(reprinted("a 1.50000") == "a 1.5\n");
  BOOST_TEST(reprinted("a 3.9999999999999") == "a 3.999999999\n");
}

BOOST_AUTO_TEST_CASE(keeps_every_64_bit_integer) {
  BOOST_TEST(reprinted("a 18446744073709551615") == "a 18446744073709551615\n");
  // no double has this value
  BOOST_TEST(reprinted("a 9007199254740993") == "a 9007199254740993\n");
}

BOOST_AUTO_TEST_CASE(refuses_what_is_not_a_stack_and_a_count) {
  for (const char* line :
       {"", " ", "a", "7", " 7", "a b", "a -1", "a +1", "a 1e3", "a .5", "a .", "a 1.2.3", "a 0x10",
        "a 18446744073709551616", "a 1,000", "a;b7", "a nan", "a 1.-"})
    BOOST_TEST(!parse_folded_line(line), line);
}

BOOST_AUTO_TEST_CASE(leaves_the_bytes_of_names_alone) {
  BOOST_TEST(reprinted(" \x01;\xff\xfe;; 1") == " \x01;\xff\xfe;; 1\n");
}

BOOST_AUTO_TEST_CASE(sums_carry_and_stop_at_the_largest) {
  Count sum{.whole = 1, .billionths = 600'000'000};
  BOOST_TEST(sum.add({.whole = 2, .billionths = 500'000'000}));
  BOOST_TEST((sum == Count{.whole = 4, .billionths = 100'000'000}));
  BOOST_TEST(!sum.add(Count::max()));
  BOOST_TEST((sum == Count::max()));
  Count near = Count::max();
  near.billionths = 0;
  BOOST_TEST(near.add({.whole = 0, .billionths = 1}));
  BOOST_TEST(!near.add({.whole = 0, .billionths = 999'999'999}));
}

BOOST_AUTO_TEST_CASE(two_columns_are_the_counts_of_two_profiles) {
  const auto line = parse_folded_line("a;operator new 1 2.5", Columns::kTwo);
  BOOST_REQUIRE(line);
  BOOST_TEST(line->stack == "a;operator new");
  BOOST_TEST((line->before == Count{.whole = 1}));
  BOOST_TEST((line->count == Count{.whole = 2, .billionths = 500'000'000}));
  for (const char* one : {"a 1", "a b 1", "1 2"})
    BOOST_TEST(!parse_folded_line(one, Columns::kTwo), one);
}

BOOST_AUTO_TEST_CASE(perl_takes_a_second_number_wherever_there_is_one) {
  const auto both = parse_folded_line("a 1 2", Columns::kPerl);
  BOOST_REQUIRE(both);
  BOOST_TEST(both->stack == "a");
  BOOST_TEST(both->before.has_value());
  const auto one = parse_folded_line("a  1", Columns::kPerl);
  BOOST_REQUIRE(one);
  BOOST_TEST(one->stack == "a ");  // the perl script removes a single blank
  BOOST_TEST(!one->before);
  const auto bare = parse_folded_line(" 7", Columns::kPerl);
  BOOST_REQUIRE(bare);
  BOOST_TEST(bare->stack.empty());
  for (const char* line : {"a 7\r", "a 7 ", "7", "a7", "a .5", ""})
    BOOST_TEST(!parse_folded_line(line, Columns::kPerl), line);
}

BOOST_AUTO_TEST_CASE(a_text_has_two_columns_if_all_its_lines_have) {
  using pe::folded::has_two_columns;
  BOOST_TEST(has_two_columns("a 1 2\nno line\nb 3 4\nc 7"));
  BOOST_TEST(!has_two_columns("a 1 2\nb 3\n"));
  BOOST_TEST(!has_two_columns("worker 3 2"));  // the line may be cut off
  BOOST_TEST(!has_two_columns(""));
}

BOOST_AUTO_TEST_SUITE_END()
