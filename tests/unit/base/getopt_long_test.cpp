// SPDX-License-Identifier: MIT
#include "base/cli/getopt_long.h"

#include <boost/test/unit_test.hpp>

#include "base/cli/run.h"
#include "support/run_tool.h"

using pe::StrictArgs;
using pe::Takes;
using pe::testing::run_tool_as;
using Words = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(getopt_long)

namespace {

constexpr pe::PerlOption kOptions[] = {
    {.name = "kernel"},
    {.name = "addrs"},
    {.name = "all"},
    {.name = "event-filter", .takes = Takes::kText, .as = "event"},
    {.name = "title", .takes = Takes::kText, .empty_is_none = true},
    {.name = "width", .takes = Takes::kInteger},
    {.name = "fontsize", .takes = Takes::kNumber},
    {.name = "help", .takes = Takes::kUsage},
};
constexpr std::string_view kExtra[] = {"--compat"};
constexpr pe::PerlName kScript{"script.pl", kExtra, kOptions};
constexpr pe::PerlName kPlain{"plain.pl", kExtra, {}};
constexpr pe::PerlName kScripts[] = {kScript, kPlain};

StrictArgs strict(const Words& args) { return to_strict(kScript, args); }

/// The words between "--compat" and "--".
Words options_of(const Words& args) {
  const StrictArgs result = strict(args);
  BOOST_TEST(result.problems == Words{}, boost::test_tools::per_element());
  BOOST_TEST_REQUIRE(result.args.size() >= 2U);
  BOOST_TEST(result.args.front() == "--compat");
  return {result.args.begin() + 1, std::find(result.args.begin(), result.args.end(), "--")};
}

Words files_of(const Words& args) {
  const StrictArgs result = strict(args);
  return {std::find(result.args.begin(), result.args.end(), "--") + 1, result.args.end()};
}

std::string problem_of(const Words& args) {
  const StrictArgs result = strict(args);
  return result.problems.size() == 1 ? result.problems[0]
                                     : std::to_string(result.problems.size()) + " problems";
}

void add_options(boost::program_options::options_description& options) {
  using boost::program_options::value;
  options.add_options()("compat", "as the script")("kernel", "mark kernel frames")(
      "event", value<std::string>()->value_name("EVENT"), "this event");
}

int echo(const pe::CommandLine& line, pe::Io& io) {
  if (line.has("compat"))
    io.out.write("compat\n");
  if (const auto* event = line.text("event"))
    io.out.write("event " + *event + "\n");
  for (const auto& operand : line.operands)
    io.out.write("operand " + operand + "\n");
  return 0;
}

constexpr pe::Tool kTool{.name = "tool",
                         .synopsis = "[FILE]...",
                         .summary = "Does.",
                         .add_options = add_options,
                         .work = echo,
                         .perl_names = kScripts};

constexpr const char* kScriptPath = "/usr/libexec/script.pl";

}  // namespace

BOOST_AUTO_TEST_CASE(an_option_may_be_abbreviated_in_any_case_behind_one_or_two_dashes) {
  for (const char* arg : {"--kernel", "-kernel", "--KERN", "-k", "+kern"})
    BOOST_TEST(options_of({arg}) == Words{"--kernel"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_value_stands_behind_an_equals_sign_or_comes_next) {
  for (const Words& args : {Words{"--event=a=b"}, Words{"-ev", "a=b"}})
    BOOST_TEST(options_of(args) == Words{"--event=a=b"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_value_may_look_like_an_option_or_be_empty) {
  BOOST_TEST(options_of({"--event", "--kernel"}) == Words{"--event=--kernel"},
             boost::test_tools::per_element());
  BOOST_TEST(options_of({"--event", "--"}) == Words{"--event=--"},
             boost::test_tools::per_element());
  BOOST_TEST(options_of({"--event", ""}) == (Words{"--event", ""}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_empty_text_may_be_none) {
  BOOST_TEST(options_of({"--title", ""}) == Words{}, boost::test_tools::per_element());
  BOOST_TEST(options_of({"--title", "a", "--title", ""}) == Words{},
             boost::test_tools::per_element());
  BOOST_TEST(options_of({"--title", "", "--title", "a"}) == Words{"--title=a"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_last_of_a_repeated_option_counts) {
  BOOST_TEST(options_of({"--event=a", "-k", "-k", "--event=b"}) == (Words{"--kernel", "--event=b"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(options_follow_files_until_two_dashes) {
  BOOST_TEST(options_of({"a", "-k", "b", "--", "-all"}) == Words{"--kernel"},
             boost::test_tools::per_element());
  BOOST_TEST(files_of({"a", "-k", "b", "--", "-all"}) == (Words{"a", "b", "-all"}),
             boost::test_tools::per_element());
  BOOST_TEST(files_of({"-", "+", ""}) == (Words{"-", "+", ""}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_ambiguous_abbreviation_names_what_it_could_mean) {
  BOOST_TEST(problem_of({"--a"}) == "--a: ambiguous: --addrs, --all");
  BOOST_TEST(options_of({"--al"}) == Words{"--all"}, boost::test_tools::per_element());
  BOOST_TEST(problem_of({"--no-kernel"}) == "--no-kernel: no such option");
}

BOOST_AUTO_TEST_CASE(numbers_are_checked_and_written_plainly) {
  BOOST_TEST(options_of({"--width=+1_000"}) == Words{"--width=1000"},
             boost::test_tools::per_element());
  for (const char* number : {"1e1", ".5", "-2.5", "1.5E-3"})
    BOOST_TEST(options_of({"--fontsize", number}) == Words{"--fontsize=" + std::string(number)},
               boost::test_tools::per_element());
  for (const char* number : {"abc", "", "800.0", "0x10", "8e2", "--", "_"})
    BOOST_TEST(problem_of({"--width", number}) ==
               "--width: not a whole number: '" + std::string(number) + "'");
  for (const char* number : {"5.", ".", "1e", "e5", "1.5x", "5.e3", "inf", "0x1", ""})
    BOOST_TEST(problem_of({"--fontsize", number}) ==
               "--fontsize: not a number: '" + std::string(number) + "'");
}

BOOST_AUTO_TEST_CASE(every_problem_is_told) {
  BOOST_TEST(strict({"--bogus", "---k", "--=x", "--k=1", "--ev=", "file", "--width"}).problems ==
                 (Words{"--bogus: no such option", "---k: no such option", "--=x: no such option",
                        "--kernel: takes no value", "--event-filter: needs a value",
                        "--width: needs a value"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(under_the_scripts_name_the_tool_is_the_script) {
  const auto r = run_tool_as(kTool, kScriptPath, {"file", "-ev", "--kernel", "--", "--odd"});
  BOOST_TEST(r.out == "compat\nevent --kernel\noperand file\noperand --odd\n");
  BOOST_TEST(r.err == "");
  BOOST_TEST(run_tool_as(kTool, kScriptPath, {"--ev", ""}).out == "compat\nevent \noperand -\n");
  BOOST_TEST(run_tool_as(kTool, "bin/tool", {"file"}).out == "operand file\n");
  BOOST_TEST(run_tool_as(kTool, "bin/tool", {"--kern"}).status == 2);
}

BOOST_AUTO_TEST_CASE(a_script_without_options_takes_everything_for_files) {
  BOOST_TEST(run_tool_as(kTool, "plain.pl", {"--kernel", "-x"}).out ==
             "compat\noperand --kernel\noperand -x\n");
}

BOOST_AUTO_TEST_CASE(wrong_options_get_the_usage_and_the_scripts_status) {
  const auto r = run_tool_as(kTool, kScriptPath, {"--bogus", "--ev="});
  BOOST_TEST(r.status == 255);
  BOOST_TEST(r.out == "");
  BOOST_TEST(r.err ==
             "tool: --bogus: no such option\n"
             "tool: --event-filter: needs a value\n"
             "Usage: script.pl [OPTION]... [FILE]...\n"
             "      --kernel              mark kernel frames\n"
             "      --addrs\n"
             "      --all\n"
             "      --event-filter EVENT  this event\n"
             "      --title\n"
             "      --width\n"
             "      --fontsize\n"
             "      --help                print this help and exit\n"
             "\n"
             "More in tool(1), under COMPATIBILITY.\n");
  BOOST_TEST(run_tool_as(kTool, kScriptPath, {"--help"}).status == 255);
}

BOOST_AUTO_TEST_SUITE_END()
