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

BOOST_AUTO_TEST_CASE(files_of_other_formats_are_refused_with_the_remedy) {
  const auto problem = [](std::string_view text) {
    const pe::testing::TempDir dir;
    const std::vector<std::string> files{dir.file("a", "x 1\n"), dir.file("b", text)};
    pe::folded::FoldedReader reader(files, -1);
    try {
      read_all(reader);
    } catch (const pe::Error& e) {
      return std::string(e.what()).substr(files[1].size());
    }
    return std::string();
  };
  const std::string ghc =
      "\tThu Jan 1\n\n\t  prog +RTS -p\n\nCOST CENTRE MODULE SRC  %time %alloc\n\nf Main  9.0 "
      "1.0\n";
  for (const std::string_view text : {"PERFILE2", "2ELIFREP\n"})
    BOOST_TEST(problem(text).ends_with("(fold it: pe-symbolize FILE | stackfold)"));
  BOOST_TEST(problem("\x1f\x8b\x08 1\n").starts_with(": compressed by gzip ("));
  BOOST_TEST(problem("\x28\xb5\x2f\xfd 1\n").starts_with(": compressed by zstd ("));
  BOOST_TEST(problem("\n\x04\x08\x01\x10\x02 1\n").starts_with(": a pprof profile, not folded"));
  for (const char* const page : {"<?xml version=\"1\"?> 1\n", "<svg> 1\n", "<!DOCTYPE html> 1\n"})
    BOOST_TEST(problem(page).starts_with(": a page, not folded text ("), page);
  BOOST_TEST(problem(ghc) == ": a profile of GHC, not folded text (fold it: stackfold FILE)");
  BOOST_TEST(problem("COST CENTRE;%time 1\nx;COST CENTRE 2\n") == "");
}

BOOST_AUTO_TEST_CASE(perl_columns_read_anything) {
  const pe::testing::TempDir dir;
  const std::vector<std::string> files{dir.file("a", "PERFILE2 7\n")};
  pe::folded::FoldedReader reader(files, -1, pe::folded::Columns::kPerl);
  BOOST_TEST(read_all(reader) == "PERFILE2 7\n");
}

BOOST_AUTO_TEST_CASE(a_text_most_of_whose_first_lines_have_no_count_is_refused) {
  const pe::testing::TempDir dir;
  const auto lines = [](std::size_t stacks, std::size_t others) {
    std::string text = "total 116\n";
    for (; stacks > 1; --stacks)
      text += "a;b 3\n";
    for (; others > 0; --others)
      text += "drwxr-xr-x   2 root root  4096 May 20  2025 mnt\n";
    return text;
  };
  const auto read = [&dir](const std::string& text, auto columns) {
    const std::vector<std::string> files{dir.file("a", text)};
    pe::folded::FoldedReader reader(files, -1, columns);
    read_all(reader);
    return reader.malformed().count;
  };
  using pe::folded::Columns;
  BOOST_TEST(read(lines(10, 10), Columns::kOne) == 10U);
  BOOST_TEST(read(lines(1, 9), Columns::kOne) ==
             9U);  // so few may be the broken lines of a profile
  BOOST_TEST(read(lines(10, 11), Columns::kPerlOne) == 11U);
  BOOST_CHECK_EXCEPTION(read(lines(10, 11), Columns::kOne), pe::Error, [](const pe::Error& error) {
    return std::string_view(error.what())
        .ends_with(
            "/a: not folded text: 11 of the first 21 lines do not end in a count; first: "
            "'drwxr-xr-x   2 root root  4096 May 20  2025 mnt' (fold a profiler's text "
            "with stackfold first)");
  });
  // Only the start decides, and its last line may be cut.
  std::string longer;
  while (longer.size() < 65'530)
    longer += "a;b 3\n";
  BOOST_TEST(read(longer + lines(1, 20'000), Columns::kOne) == 20'000U);
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

BOOST_AUTO_TEST_CASE(a_file_with_fewer_columns_than_the_first_is_ignored_but_not_refused) {
  const pe::testing::TempDir dir;
  std::string one;
  for (int i = 0; i < 40; ++i)
    one += "y 3\n";
  const std::vector<std::string> files{dir.file("a", "x 1 2\n"), dir.file("b", one)};
  pe::folded::FoldedReader reader(files, -1, std::nullopt);
  BOOST_TEST(read_all(reader) == "x 1 2\n");
  BOOST_TEST(reader.malformed().count == 40U);
}

BOOST_AUTO_TEST_SUITE_END()
