// SPDX-License-Identifier: MIT
#include "folded/folded_reader.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/temp_dir.h"

namespace {

std::string read_all(pe::folded::FoldedReader& reader) {
  std::string out;
  while (const auto line = reader.next())
    append_folded_line(out, *line);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(folded_reader)

BOOST_AUTO_TEST_CASE(goes_over_the_files_in_order) {
  const pe::testing::TempDir dir;
  const std::vector<std::string> files{dir.file("a", "x 1\ny 2"), dir.file("empty", ""),
                                       dir.file("b", "x 3\n")};
  pe::folded::FoldedReader reader(files, -1);
  BOOST_TEST(read_all(reader) == "x 1\ny 2\nx 3\n");
  BOOST_TEST(reader.malformed().count == 0U);
}

BOOST_AUTO_TEST_CASE(counts_malformed_lines_and_quotes_the_first) {
  const pe::testing::TempDir dir;
  const std::vector<std::string> files{dir.file("a", "x 1\n\n  \n"),
                                       dir.file("b", "y 2\nb\x1b[2Jad\nworse\nz 3\n")};
  pe::folded::FoldedReader reader(files, -1);
  BOOST_TEST(read_all(reader) == "x 1\ny 2\nz 3\n");
  BOOST_TEST(reader.malformed().count == 2U);
  BOOST_TEST(reader.malformed().describe() ==
             "ignored 2 lines that are not \"stack count\"; first: " + files[1] +
                 ":2: 'b\\x1b[2Jad'");
}

BOOST_AUTO_TEST_CASE(a_long_malformed_line_is_quoted_in_part) {
  const pe::testing::TempDir dir;
  const std::vector<std::string> files{dir.file("a", std::string(1'000'000, 'x'))};
  pe::folded::FoldedReader reader(files, -1);
  BOOST_TEST(read_all(reader).empty());
  BOOST_TEST(reader.malformed().first == files[0] + ":1: '" + std::string(60, 'x') + "...'");
}

BOOST_AUTO_TEST_CASE(a_missing_file_ends_the_run) {
  const std::vector<std::string> files{"/nonexistent"};
  pe::folded::FoldedReader reader(files, -1);
  BOOST_CHECK_THROW(reader.next(), pe::Error);
}

BOOST_AUTO_TEST_CASE(the_first_file_decides_about_the_columns) {
  const pe::testing::TempDir dir;
  const std::vector<std::string> files{dir.file("a", "x 1 2\n"), dir.file("b", "y 3\nz 4 5\n")};
  pe::folded::FoldedReader reader(files, -1, std::nullopt);
  const auto first = reader.next();
  BOOST_REQUIRE(first);
  BOOST_TEST(first->before.has_value());
  BOOST_TEST(read_all(reader) == "z 4 5\n");
  BOOST_TEST(reader.malformed().describe().starts_with(
      "ignored 1 line that is not \"stack count count\"; first: "));
}

BOOST_AUTO_TEST_SUITE_END()
