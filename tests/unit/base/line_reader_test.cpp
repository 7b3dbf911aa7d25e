// SPDX-License-Identifier: MIT
#include "base/io/input.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "base/error.h"
#include "support/temp_dir.h"

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  const pe::testing::TempDir dir;
  auto input = pe::Input::open(dir.file("lines", text), -1);
  pe::LineReader reader(input);
  std::vector<std::string> lines;
  while (const auto line = reader.next())
    lines.emplace_back(*line);
  BOOST_TEST(reader.line_number() == lines.size());
  BOOST_TEST(reader.lacks_newline() == (!text.empty() && !text.ends_with('\n')));
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(line_reader)

BOOST_AUTO_TEST_CASE(splits_at_newlines) {
  BOOST_TEST(lines_of("a\n\nb\n") == (std::vector<std::string>{"a", "", "b"}));
}

BOOST_AUTO_TEST_CASE(a_last_line_without_newline_counts) {
  BOOST_TEST(lines_of("a\nb") == (std::vector<std::string>{"a", "b"}));
}

BOOST_AUTO_TEST_CASE(an_empty_file_has_no_lines) { BOOST_TEST(lines_of("").empty()); }

BOOST_AUTO_TEST_CASE(lines_longer_than_any_buffer_come_whole) {
  const std::string longest(3'000'000, 'x');
  BOOST_TEST(lines_of("a\n" + longest + "\nb" + longest) ==
             (std::vector<std::string>{"a", longest, "b" + longest}));
}

BOOST_AUTO_TEST_CASE(refuses_a_line_that_is_too_long) {
  const pe::testing::TempDir dir;
  auto input = pe::Input::open(dir.file("lines", "a\n" + std::string(1'000'000, 'x')), -1);
  pe::LineReader reader(input, 500'000);
  BOOST_TEST(reader.next().value() == "a");
  BOOST_CHECK_EXCEPTION(reader.next(), pe::Error, [](const pe::Error& e) {
    return std::string_view(e.what()).ends_with("/lines: line 2 has more than 500000 bytes");
  });
}

BOOST_AUTO_TEST_CASE(names_the_file_that_is_missing_or_a_folder) {
  const auto is = [](const char* text) {
    return [text](const pe::Error& e) { return std::string_view(e.what()) == text; };
  };
  BOOST_CHECK_EXCEPTION(pe::Input::open("/nonexistent", -1), pe::Error,
                        is("/nonexistent: No such file or directory"));
  BOOST_CHECK_EXCEPTION(pe::Input::open("/", -1), pe::Error, is("/: Is a directory"));
}

BOOST_AUTO_TEST_SUITE_END()
