// SPDX-License-Identifier: MIT
#include "folded/facts.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "folded/folded_line.h"
#include "folded/folded_reader.h"
#include "support/temp_dir.h"

namespace {

using pe::folded::Columns;

std::string fact(std::string_view key, std::string_view value) {
  std::string line;
  pe::folded::append_fact(line, key, value);
  return line;
}

/// The facts that a reader of these files has at the end, and its malformed lines.
std::string facts_of(const std::vector<std::string>& texts,
                     std::optional<Columns> columns = std::nullopt) {
  const pe::testing::TempDir dir;
  std::vector<std::string> files;
  for (const std::string& text : texts)
    files.push_back(dir.file(std::to_string(files.size()), text));
  pe::folded::FoldedReader reader(files, -1, columns);
  while (reader.next()) {
  }
  std::string out;
  for (const pe::folded::Fact& fact : reader.facts())
    out += fact.key + "=" + fact.value + ";";
  return out + std::to_string(reader.malformed().count);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(facts)

BOOST_AUTO_TEST_CASE(a_fact_has_a_key_and_a_value) {
  BOOST_TEST(facts_of({"# command: make -j8 all\n# host: a: b\r\nmain 3\n"}) ==
             "command=make -j8 all;host=a: b;0");
}

BOOST_AUTO_TEST_CASE(other_lines_are_malformed) {
  for (const std::string_view line :
       {"# a comment", "#host: a", "# Host: a", "# : a", "# host:a", "# host: ", "# ho st: a",
        "# 1: a", " # host: a", "# abcdefghijklmnopqrstuvwxyz-012345: a"})
    BOOST_TEST(facts_of({std::string(line) + "\nmain 3\n"}) == "1", line);
}

BOOST_AUTO_TEST_CASE(a_line_that_ends_in_a_count_is_a_stack) {
  BOOST_TEST(facts_of({"# samples: 12\nmain 3\n"}) == "0");
  BOOST_TEST(facts_of({"# samples: 12 13\nmain 3 4\n"}) == "0");
}

BOOST_AUTO_TEST_CASE(a_value_that_ends_in_a_count_is_quoted) {
  BOOST_TEST(fact("command", "sleep 10") == "# command: \"sleep 10\"\n");
  BOOST_TEST(fact("samples", "10.") == "# samples: \"10.\"\n");
  BOOST_TEST(fact("a", "\"b\"") == "# a: \"\"b\"\"\n");
  BOOST_TEST(fact("a", "one\u2003\u0663") == "# a: \"one\u2003\u0663\"\n");  // digits to perl
  BOOST_TEST(fact("a", "web1") == "# a: web1\n");
  BOOST_TEST(fact("a", "12 samples") == "# a: 12 samples\n");
  for (const std::string_view value :
       {"sleep 10", "10.", "\"b\"", "\"", "\"\"", "1 \"2", "a\"", "1"})
    BOOST_TEST(facts_of({fact("a", value)}) == "a=" + std::string(value) + ";0");
}

BOOST_AUTO_TEST_CASE(a_value_stays_in_its_line) {
  BOOST_TEST(fact("a", " b\nc\x7f\t") == "# a: b?c?\n");
  BOOST_TEST(fact("a", " \t\r").empty());
  const std::string longest(pe::folded::kMaxValueBytes, 'x');
  BOOST_TEST(fact("a", longest + "y") == "# a: " + longest + "\n");
  BOOST_TEST(fact("a", longest.substr(1) + " 12").ends_with("x\n"));
}

BOOST_AUTO_TEST_CASE(facts_may_come_anywhere) {
  BOOST_TEST(facts_of({"main 3\n# host: a\nmain 4\n"}) == "host=a;0");
}

BOOST_AUTO_TEST_CASE(several_recordings_have_no_facts) {
  BOOST_TEST(facts_of({"# host: a\nmain 3\n# host: a\nmain 3\n# rate: 99 Hz\n"}) == "0");
  BOOST_TEST(facts_of({"# host: a\nmain 3\n", "main 3\n"}) == "0");
}

BOOST_AUTO_TEST_CASE(few_and_short_facts_are_kept) {
  pe::folded::Facts facts;
  BOOST_TEST(facts.take("# long: " + std::string(pe::folded::kMaxValueBytes + 1, 'x')));
  for (std::size_t i = 0; i <= pe::folded::kMaxFacts; ++i)
    BOOST_TEST(facts.take("# k" + std::to_string(i) + ": v"));
  BOOST_TEST(facts.all().size() == pe::folded::kMaxFacts);
  BOOST_TEST(facts.left_out() == 2U);
}

BOOST_AUTO_TEST_CASE(perl_scripts_know_no_facts) {
  BOOST_TEST(facts_of({"# host: a\nmain 3\n"}, Columns::kPerl) == "1");
}

BOOST_AUTO_TEST_CASE(text_with_facts_is_folded_text) {
  const std::string facts = fact("host", "a") + fact("command", "make 7") + fact("rate", "99 Hz");
  BOOST_TEST(pe::folded::looks_folded(facts + "main 3\n"));
  BOOST_TEST(!pe::folded::looks_folded(facts + "main 3\nmain\n"));
  BOOST_TEST(pe::folded::has_two_columns(facts + "main 3 4\n"));
}

BOOST_AUTO_TEST_SUITE_END()
