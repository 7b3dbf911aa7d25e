// The expected texts are those that perl 5.36 prints.
// SPDX-License-Identifier: MIT
#include "painting/numbers.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using pe::painting::PerlNumber;

BOOST_AUTO_TEST_SUITE(perl_number)

namespace {

std::string sum(const std::vector<const char*>& numbers) {
  PerlNumber all;
  for (const char* number : numbers)
    all += PerlNumber::parse(number);
  return all.text();
}

}  // namespace

BOOST_AUTO_TEST_CASE(integers_are_exact_up_to_64_bits) {
  BOOST_TEST(sum({"007", "5."}) == "12");
  BOOST_TEST(sum({"9007199254740993", "1"}) == "9007199254740994");
  BOOST_TEST(sum({"18446744073709551615"}) == "18446744073709551615");
  BOOST_TEST(sum({"18446744073709551615", "1"}) == "1.84467440737096e+19");
  BOOST_TEST(sum({"100000000000000000000000"}) == "1e+23");
}

BOOST_AUTO_TEST_CASE(fractions_have_fifteen_digits) {
  BOOST_TEST(sum({"0.1", "0.2"}) == "0.3");
  BOOST_TEST(sum({"3.14159265358979"}) == "3.14159265358979");
  BOOST_TEST(sum({"99999999999999", "3.14159265358979"}) == "100000000000002");
  BOOST_TEST(sum({"0.5", "0.5"}) == "1");
  BOOST_TEST(sum({}) == "0");
}

BOOST_AUTO_TEST_CASE(a_difference_keeps_the_errors_of_its_sums) {
  PerlNumber start = PerlNumber::parse("0.1");
  start += PerlNumber::parse("0.7");
  PerlNumber end = start;
  end += PerlNumber::parse("0.1");
  BOOST_TEST(end.printed().minus(start) > 0.1);
  BOOST_TEST(PerlNumber(std::uint64_t{1}).minus(PerlNumber(std::uint64_t{3})) == -2);
}

BOOST_AUTO_TEST_CASE(a_line_has_its_counts_as_they_are_written) {
  const std::string line = "a b\t18446744073709551616 007";
  const auto folded = pe::folded::parse_perl_line(line, true);
  BOOST_REQUIRE(folded);
  BOOST_TEST(folded->stack == "a b");
  const auto parts = pe::folded::perl_parts(line, *folded);
  BOOST_TEST(parts.before == "18446744073709551616");
  BOOST_TEST(parts.count == "007");
  BOOST_TEST(pe::painting::perl_counts(line, *folded).before->text() == "1.84467440737096e+19");
}

BOOST_AUTO_TEST_SUITE_END()
