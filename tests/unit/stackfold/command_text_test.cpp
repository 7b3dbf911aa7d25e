// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <string>

#include "stackfold/root_frames.h"

using namespace std::string_literals;
using pe::fold::command_text;

BOOST_AUTO_TEST_SUITE(command_lines_as_text)

BOOST_AUTO_TEST_CASE(joins_words_and_drops_the_programs_folder) {
  BOOST_TEST(command_text("/usr/bin/cc\0-c\0src/a.c\0"s) == "cc -c src/a.c");
}

BOOST_AUTO_TEST_CASE(keeps_a_title_that_replaces_the_words) {
  BOOST_TEST(command_text("postgres: a/b idle\0\0\0"s) == "postgres: a/b idle");
}

BOOST_AUTO_TEST_CASE(is_empty_without_words) {
  BOOST_TEST(command_text("").empty());
  BOOST_TEST(command_text("\0\0"s).empty());
  BOOST_TEST(command_text(" \0"s).empty());
}

BOOST_AUTO_TEST_CASE(cannot_end_the_frame_or_control_a_terminal) {
  BOOST_TEST(command_text("a;b\nc\0\x1b[31m\xe2\x80\xae\0"s) == "a:b?c ?[31m?");
}

BOOST_AUTO_TEST_CASE(looks_not_like_a_time) {
  BOOST_TEST(command_text("@12.300\0"s) == "_@12.300");
}

BOOST_AUTO_TEST_CASE(marks_a_command_line_that_was_not_recorded_as_a_whole) {
  BOOST_TEST(command_text("cc\0-DLONG"s) == "cc -DLONG...");
}

BOOST_AUTO_TEST_CASE(a_long_one_keeps_its_start_and_its_end) {
  const std::string shown = command_text("cc\0"s + std::string(60'000, 'x') + "\0last.c\0"s);
  BOOST_TEST(shown.size() == 120U);
  BOOST_TEST(shown.starts_with("cc xxx"));
  BOOST_TEST(shown.ends_with("x last.c"));
  BOOST_TEST(shown.find("x...x") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(is_not_cut_inside_a_character) {
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += "ä";
  std::string wanted;
  for (int i = 0; i < 117; ++i)
    wanted += i == 77 ? "...ä" : "ä";
  BOOST_TEST(command_text(text + '\0') == wanted);
}

BOOST_AUTO_TEST_SUITE_END()
