// Formats whose lines form a call tree, or refer to parts of one: GHC, VTune, Visual Studio,
// xctrace.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>

#include <string>

#include "stackfold/formats/readers.h"
#include "support/costly.h"
#include "support/stackfold.h"

using pe::fold::split_csv;
using pe::fold::visual_studio::parse_grouped;
using pe::testing::folded;
using pe::testing::stackfold;

namespace {

const std::string kGhc = "COST CENTRE MODULE SRC no. entries %time %alloc %time %alloc\n\n";
const std::string kVtune = "Function Stack,CPU Time:Self,Module\n";
const std::string kVisualStudio = "Level,Function Name,Number of Calls,Elapsed Exclusive Time %\n";

std::string xctrace(const std::string& rows) {
  return "<?xml version=\"1.0\"?>\n<trace-query-result><node>" + rows +
         "</node></trace-query-result>\n";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(call_trees)

BOOST_AUTO_TEST_CASE(csv_fields_lose_their_quotes) {
  using Fields = std::vector<std::string>;
  BOOST_TEST(
      (split_csv("a, b ,\"c,d\",\"e \"\"f\"\"\",") == Fields{"a", "b", "c,d", "e \"f\"", ""}));
  BOOST_TEST((split_csv("") == Fields{""}));
  BOOST_TEST(!split_csv("\"a"));
  BOOST_TEST(!split_csv("\"a\"b,c"));
}

BOOST_AUTO_TEST_CASE(grouped_numbers_have_one_separator_and_groups_of_three) {
  for (const char* text : {"2893824", "2,893,824", "2.893.824", "2 893 824", "2'893'824",
                           "2\xc2\xa0"
                           "893\xc2\xa0"
                           "824",
                           "2\xe2\x80\xaf"
                           "893\xe2\x80\xaf"
                           "824"})
    BOOST_TEST(parse_grouped(text).value_or(0) == 2893824U, text);
  for (const char* text : {"", "4,718.25", "1,2", "1,,234", ",123", "1234,567", "x", "1,234,"})
    BOOST_TEST(!parse_grouped(text), text);
}

BOOST_AUTO_TEST_CASE(a_table_of_ghc_is_no_folded_text) {
  const auto r = stackfold({}, kGhc +
                                   "MAIN MAIN <built-in> 1 0 0.5 0.0 100.0 100.0\n"
                                   " f Main a.hs:1 2 1 99.4 0.0 99.5 0.0\n");
  BOOST_TEST(r.out == "MAIN.MAIN 5\nMAIN.MAIN;Main.f 994\n");
  BOOST_TEST(r.err == "");
}

BOOST_AUTO_TEST_CASE(a_column_that_a_profile_of_ghc_lacks_is_an_error) {
  const auto r = stackfold({"--event", "ticks"}, kGhc + "MAIN MAIN x 1 0 0.5 0.0 100.0 100.0\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "stackfold: stdin: no sample type 'ticks' (it has time, alloc)\n");
}

BOOST_AUTO_TEST_CASE(rows_that_are_none_are_counted) {
  const auto ghc =
      stackfold({}, kGhc + "MAIN MAIN x 1 0 0.5 0.0 1.0 1.0\n   deep M x 1 0 1 1 1 1\n");
  BOOST_TEST(ghc.out == "MAIN.MAIN 5\n");
  BOOST_TEST(ghc.err ==
             "stackfold: ignored 1 unknown line; first: stdin:4: '   deep M x 1 0 1 1 1 1'\n");
  const auto vtune = stackfold({}, kVtune + "main,1.0,x\n f,soon,x\n");
  BOOST_TEST(vtune.out == "main 1000000\n");
  BOOST_TEST(vtune.err == "stackfold: ignored 1 unknown line; first: stdin:3: ' f,soon,x'\n");
  const auto vs = stackfold({}, kVisualStudio + "0,\"a\",1,0.25\n1,\"b\",\"4,718.25\",1.00\n");
  BOOST_TEST(vs.out == "a 25\n");
  BOOST_TEST(vs.err ==
             "stackfold: ignored 1 unknown line; first: stdin:3: '1,\"b\",\"4,718.25\",1.00'\n");
}

BOOST_AUTO_TEST_CASE(a_level_that_few_bytes_could_make_very_deep_is_refused, *pe::tests::costly()) {
  std::string text = kVisualStudio;
  for (int level = 0; level < 5000; ++level)
    text += std::to_string(level) + ",f,1,0.01\n";
  const auto r = stackfold({}, text);
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err.starts_with("stackfold: ignored 904 unknown lines"));
}

BOOST_AUTO_TEST_CASE(time_of_vtune_is_exact) {
  BOOST_TEST(folded(kVtune + "f,0.016612,x\nf,0.000001,x\ng,0.0000004,x\n") == "f 16613\ng 0.4\n");
}

BOOST_AUTO_TEST_CASE(xml_that_is_cut_or_has_a_document_type_is_damaged) {
  const std::string row = "<row><backtrace id=\"1\"><frame name=\"f\"/></backtrace></row>";
  const auto cut = stackfold({"--from", "xctrace"}, "<trace-query-result><node>" + row);
  BOOST_TEST(cut.status == 1);
  BOOST_TEST(cut.out == "f 1\n");
  BOOST_TEST(cut.err == "stackfold: stdin: line 1: no element found\n");
  const auto typed =
      stackfold({"--from", "xctrace"}, "<!DOCTYPE a [<!ENTITY b \"bb\">]>\n<a>&b;</a>\n");
  BOOST_TEST(typed.status == 1);
  BOOST_TEST(typed.err == "stackfold: stdin: line 1: document types are not accepted\n");
}

BOOST_AUTO_TEST_CASE(a_reference_to_nothing_is_left_out) {
  const auto r =
      stackfold({}, xctrace("<row><backtrace ref=\"7\"/></row><row><backtrace id=\"1\">"
                            "<frame ref=\"9\"/><frame id=\"2\" name=\"m;n\"/></backtrace>"
                            "</row>"));
  BOOST_TEST(r.out == "m:n;[unknown] 1\n");
  BOOST_TEST(r.err == "stackfold: stdin: 1 row without a known backtrace left out\n");
}

BOOST_AUTO_TEST_SUITE_END()
