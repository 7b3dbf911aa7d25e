// What stackfold reads back from the files that our own tools have written.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <string>

#include "flamediff/flamediff.h"
#include "support/flamesvg.h"
#include "support/stackfold.h"
#include "support/temp_dir.h"

using pe::testing::flamesvg;
using pe::testing::Result;
using pe::testing::stackfold;

namespace {

constexpr std::string_view kFolded =
    "main;<b>_[k] 1.25\n"
    "main;a;a;x&y_[i] 3\n"
    "main;a;z_[t] 1844674407370955\n"
    "main;caf\xc3\xa9_[j] 2\n";

std::string page(const std::vector<std::string>& args = {}, std::string_view input = kFolded) {
  return flamesvg(args, input).out;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != text.npos, from);
  return text.replace(at, from.size(), to);
}

/// Expects that nothing was folded, and this reason.
void check_refused(const std::string& input, const std::string& reason) {
  const Result r = stackfold({}, input);
  BOOST_TEST(r.out == "");
  BOOST_TEST(r.err == "stackfold: stdin: " + reason + "\n");
  BOOST_TEST(r.status == 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(own_pages)

BOOST_AUTO_TEST_CASE(a_flame_graph_gives_the_text_that_it_was_drawn_from) {
  for (const std::vector<std::string>& args : {std::vector<std::string>{},
                                               {"--html"},
                                               {"--reverse"},
                                               {"--icicle"},
                                               {"--encoding", "ISO-8859-1"},
                                               {"--notes", "two -- dashes"}}) {
    const Result r = stackfold({}, page(args));
    BOOST_TEST(r.out == kFolded);
    BOOST_TEST(r.err == "");
    BOOST_TEST(r.status == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_flame_graph_has_the_facts_and_the_unit) {
  const std::string folded = "# command: a \"b\" <c> & 'd' 1\n# unit: us\nmain 7\n";
  const std::string kept = stackfold({"--annotate"}, folded).out;
  BOOST_TEST(stackfold({"--annotate"}, page({}, folded)).out == kept);
  BOOST_TEST(stackfold({"--annotate"}, page({"--countname", "bytes"}, "main 7\n")).out ==
             "# unit: bytes\nmain 7\n");
  BOOST_TEST(stackfold({"--annotate"}, page({}, "main 7\n")).out == "main 7\n");
}

BOOST_AUTO_TEST_CASE(a_flame_graph_with_times_gives_the_sums_of_all_times) {
  BOOST_TEST(stackfold({}, page({}, "@1.000;main;f 1\n@1.100;main;f 2\n")).out == "main;f 3\n");
}

BOOST_AUTO_TEST_CASE(frames_too_small_for_the_page_are_counted_and_reported) {
  std::string folded;
  for (int i = 100; i < 400; ++i)
    folded += "main;wide 1000000\nmain;f" + std::to_string(i) + " 1\n";
  const Result r = stackfold({}, page({"--embed", "1000"}, folded));
  BOOST_TEST(r.out == "main;[others] 300\nmain;wide 300000000\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: 300 frames with fewer than 2 counts each are too small for the "
             "page: [others]\n");
  BOOST_TEST(r.status == 0);
}

BOOST_AUTO_TEST_CASE(folded_recursion_is_reported) {
  const Result r = stackfold({}, page({"--fold-recursion"}));
  BOOST_TEST(r.out.find("main;a;x&y_[i] 3\n") != r.out.npos);
  BOOST_TEST(r.err == "stackfold: stdin: recursive calls are one frame\n");
}

BOOST_AUTO_TEST_CASE(a_flame_graph_without_its_profile_is_refused_with_the_reason) {
  check_refused(page({"--embed", "none"}),
                "a flame graph without its profile (it was drawn with --embed none, a small "
                "--embed, or --nameattr)");
  check_refused(page({}, "no stack\n"), "a page with an error message, not a flame graph");
  const std::string drawn = page();
  check_refused(drawn.substr(0, drawn.find("<metadata class=\"tree\">") + 40),
                "a flame graph that is cut off: its profile is incomplete");
  check_refused(drawn.substr(0, drawn.find("<g id=\"frames\"") + 40),
                "a flame graph that is cut off: its profile is incomplete");
  const std::string damaged =
      "a flame graph whose profile was edited or damaged, or is larger than 64 MiB";
  const auto tree = drawn.find("<metadata class=\"tree\">") + 33;
  std::string edited = drawn;
  edited[tree] = edited[tree] == 'A' ? 'B' : 'A';
  check_refused(edited, damaged);
  edited[tree] = '?';
  check_refused(edited, damaged);
  const std::string other = replaced(drawn, "<metadata class=\"tree\">", "<metadata id=\"m\">");
  check_refused(replaced(other, "<svg version=\"1.1\" ", "<svg\n   version=\"1.1\"\n   "),
                "a flame graph that was edited: its profile is missing");
  check_refused(
      replaced(drawn, "class=\"flamegraph\"", "class=\"flamegraph live\"").erase(tree - 40),
      "a view saved from a flame graph, which has no profile (use the file of the flame "
      "graph)");
}

BOOST_AUTO_TEST_CASE(a_page_that_is_cut_off_after_its_profile_is_read_and_reported) {
  const std::string drawn = page();
  const Result r = stackfold({}, drawn.substr(0, drawn.find("<script>") + 100));
  BOOST_TEST(r.out == kFolded);
  BOOST_TEST(r.err == "stackfold: stdin: the page is cut off after its profile\n");
  BOOST_TEST(r.status == 1);
}

BOOST_AUTO_TEST_CASE(pages_of_others_and_comparisons_are_refused) {
  check_refused(
      "<?xml version=\"1.0\" standalone=\"no\"?>\n<!DOCTYPE svg PUBLIC \"x\">\n<svg "
      "version=\"1.1\" "
      "width=\"1200\" onload=\"init(evt)\">\n</svg>\n",
      "a flame graph of flamegraph.pl, which has only boxes, no profile (fold the recording "
      "again)");
  check_refused(
      "<?xml version=\"1.0\"?><svg onload=\"init(evt)\" "
      "xmlns:fg=\"http://github.com/jonhoo/inferno\"></svg>",
      "a flame graph of inferno, which has only boxes, no profile (fold the recording again)");
  check_refused("<svg width=\"3\"></svg>", "a drawing that stackpipe did not make");
  const pe::testing::TempDir dir;
  const std::string before = dir.file("before", "a 1\n");
  const std::string after = dir.file("after", "a 2\n");
  check_refused(pe::testing::run_tool(pe::kFlamediff, {"-q", before, after}).out,
                "a comparison of two profiles (use one of these)");
  check_refused(page({}, "a 1 2\n"), "a comparison of two profiles (use one of these)");
}

BOOST_AUTO_TEST_CASE(options_that_a_flame_graph_has_no_data_for_are_refused) {
  const auto message = [](const std::string& option, const std::string& value) {
    return stackfold({option, value}, page()).err;
  };
  BOOST_TEST(message("--time", "1,2") ==
             "stackfold: stdin: --time: flamegraph text has no times\n");
  BOOST_TEST(message("--event", "x") ==
             "stackfold: stdin: --event: flamegraph text has no events\n");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(own_speedscope_files)

namespace {

std::string document(std::string_view lists, std::string_view more = "") {
  return std::string("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",")
      .append(more)
      .append(
          "\"shared\":{\"frames\":[{\"name\":\"main\"},{\"file\":\"a.c\",\"name\":\"f;g\"}]},"
          "\"profiles\":[")
      .append(lists)
      .append("]}\n");
}

constexpr std::string_view kCpu =
    R"({"type":"sampled","name":"cpu","unit":"none","samples":[[0],[0,1],[0]],"weights":[1,2,4]})";
constexpr std::string_view kWaits =
    R"({"type":"sampled","name":"waits","unit":"nanoseconds","samples":[[1],[]],"weights":[3000,1000]})";

std::string two_lists(std::string_view more) {
  return document(std::string(kCpu).append(",").append(kWaits), more);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_speedscope_file_gives_the_text_that_it_was_made_from) {
  const std::string folded = "main;a;a 3\nmain;b 18446744073709551\n";
  const Result r = stackfold({}, stackfold({"--to", "speedscope"}, folded).out);
  BOOST_TEST(r.out == folded);
  BOOST_TEST(r.err == "");
  BOOST_TEST(r.status == 0);
}

BOOST_AUTO_TEST_CASE(the_list_that_viewers_show_first_is_folded_unless_another_is_named) {
  BOOST_TEST(stackfold({}, two_lists("")).out == "main 5\nmain;f:g 2\n");
  BOOST_TEST(stackfold({"--annotate"}, two_lists("\"activeProfileIndex\":1,")).out ==
             "# unit: us\n[unknown] 1\nf:g 3\n");
  BOOST_TEST(stackfold({"--event", "waits"}, two_lists("")).out == "[unknown] 1\nf:g 3\n");
  BOOST_TEST(stackfold({"--event", "x"}, two_lists("")).err ==
             "stackfold: stdin: no sample type 'x' (it has cpu, waits)\n");
  BOOST_TEST(stackfold({"--all-events"}, two_lists("")).err ==
             "stackfold: stdin: --all-events: the lists of threads repeat the samples (choose one: "
             "--event NAME)\n");
}

BOOST_AUTO_TEST_CASE(damaged_speedscope_files_are_refused_with_the_reason) {
  const std::string whole = two_lists("");
  check_refused(whole.substr(0, whole.size() - 4), "the profile is cut off");
  check_refused(document("}"), "damaged JSON at byte 142: Invalid value.");
  check_refused(document(""), "no list of samples in it");
  check_refused(
      document(R"({"type":"evented","name":"x"})"),
      "a list of type 'evented': only lists of samples are read, as stackfold writes them");
  check_refused(document(R"({"type":"sampled","samples":[[0]],"weights":[1.5]})"),
                "weights with fractions: only whole ones are read, as stackfold writes them");
  check_refused(document(R"({"type":"sampled","samples":[[0]],"weights":[]})"),
                "1 sample with 0 weights");
  const Result r = stackfold({}, document(R"({"type":"sampled","samples":[[0,2]],"weights":[1]})"));
  BOOST_TEST(r.out == "main;[unknown] 1\n");
  BOOST_TEST(r.err == "stackfold: stdin: 1 frame that it does not define\n");
  BOOST_TEST(r.status == 1);
}

BOOST_AUTO_TEST_SUITE_END()
