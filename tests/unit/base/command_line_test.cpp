// SPDX-License-Identifier: MIT
#include "base/cli/command_line.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.h"
#include "support/run_tool.h"
#include "support/string_output.h"
#include "support/temp_dir.h"

namespace po = boost::program_options;
using pe::testing::run_tool;

BOOST_AUTO_TEST_SUITE(command_line)

namespace {

void add_options(po::options_description& options) {
  options.add_options()("freq,F", po::value<std::string>()->value_name("HZ"), "how often")(
      "quiet,q", "say less")("raw", "long name only");
}

/// Prints its arguments, one on each line.
int echo(const pe::CommandLine& line, pe::Io& io) {
  if (const auto* freq = line.text("freq"))
    io.out.write("freq=" + *freq + "\n");
  for (const auto& operand : line.operands)
    io.out.write("operand " + operand + "\n");
  for (const auto& word : line.command)
    io.out.write("command " + word + "\n");
  return 7;
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int fail(const pe::CommandLine& /*line*/, pe::Io& /*io*/) { throw pe::Error("it: broke"); }

constexpr pe::Tool kFilter{"filter", "[FILE]...", "Filters.", add_options, echo};
constexpr pe::Tool kRunner{"runner", "COMMAND", "Runs.", add_options, echo, true};
void add_page(po::options_description& options) {
  options.add_options()("color,colour", po::value<std::string>()->value_name("NAME"), "colour");
}

void add_compatible(po::options_description& options) { options.add_options()("compat", "as it"); }

/// Writes its first operand, and returns the status in the second one.
int write_and_return(const pe::CommandLine& line, pe::Io& io) {
  io.out.write(line.operands.at(0));
  io.note("a note");
  io.report("an error\x1b");
  if (line.operands.size() < 2)
    throw pe::Error("it: broke");
  if (const auto* color = line.text("color"))
    io.out.write(*color);
  return std::stoi(line.operands[1]);
}

constexpr pe::Tool kWriter{.name = "writer",
                           .synopsis = "[FILE]...",
                           .summary = "Writes.",
                           .add_options = add_page,
                           .work = write_and_return,
                           .is_filter = true,
                           .add_compatible_options = add_compatible,
                           .compatible_with = "writer.pl"};
constexpr pe::Tool kFailing{"runner", "COMMAND", "Runs.", add_options, fail, true};

}  // namespace

BOOST_AUTO_TEST_CASE(no_operand_means_stdin) {
  const auto r = run_tool(kFilter, {});
  BOOST_TEST(r.out == "operand -\n");
  BOOST_TEST(r.status == 7);
}

BOOST_AUTO_TEST_CASE(options_may_follow_files) {
  BOOST_TEST(run_tool(kFilter, {"a", "-F99", "b"}).out == "freq=99\noperand a\noperand b\n");
}

BOOST_AUTO_TEST_CASE(the_commands_own_options_are_left_alone) {
  BOOST_TEST(run_tool(kRunner, {"-F", "99", "./a.out", "-x", "-F", "1"}).out ==
             "freq=99\ncommand ./a.out\ncommand -x\ncommand -F\ncommand 1\n");
  BOOST_TEST(run_tool(kRunner, {"--freq", "99", "--", "-odd-name", "--help"}).out ==
             "freq=99\ncommand -odd-name\ncommand --help\n");
  BOOST_TEST(run_tool(kRunner, {"--freq=99", "-q", "ls", "--", "x"}).out ==
             "freq=99\ncommand ls\ncommand --\ncommand x\n");
}

BOOST_AUTO_TEST_CASE(short_options_may_be_bundled_before_a_command) {
  BOOST_TEST(run_tool(kRunner, {"-qF", "99", "ls"}).out == "freq=99\ncommand ls\n");
  BOOST_TEST(run_tool(kRunner, {"-qF99", "ls", "-x"}).out == "freq=99\ncommand ls\ncommand -x\n");
}

BOOST_AUTO_TEST_CASE(messages_hold_no_control_characters) {
  const auto r = run_tool(kFilter, {"--\x1b[31m\n"});
  BOOST_TEST(r.err.find('\x1b') == std::string::npos);
  BOOST_TEST(std::count(r.err.begin(), r.err.end(), '\n') == 1);
}

BOOST_AUTO_TEST_CASE(abbreviations_and_unknown_options_are_refused) {
  for (const char* arg : {"--fre=1", "--nonsense", "-z"}) {
    const auto r = run_tool(kFilter, {arg});
    BOOST_TEST(r.status == 2);
    BOOST_TEST(r.out.empty());
    BOOST_TEST(r.err.ends_with(" (see --help)\n"));
  }
}

BOOST_AUTO_TEST_CASE(a_tool_that_runs_a_command_fails_with_125) {
  const auto r = run_tool(kFailing, {"ls"});
  BOOST_TEST(r.status == 125);
  BOOST_TEST(r.err == "runner: it: broke\n");
  BOOST_TEST(run_tool(kFailing, {}).status == 1);
}

BOOST_AUTO_TEST_CASE(a_filter_writes_to_the_file_of_output) {
  const pe::testing::TempDir dir;
  const std::string file = dir.file("out", "old");
  const auto r = run_tool(kWriter, {"-o", file, "text", "0"});
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out == "");
  BOOST_TEST(content(file) == "text");
  BOOST_TEST(run_tool(kWriter, {"--output=" + file, "partly", "1"}).status == 1);
  BOOST_TEST(content(file) == "partly");  // the input was damaged
  BOOST_TEST(run_tool(kWriter, {"-o", "-", "text", "0"}).out == "text");
}

BOOST_AUTO_TEST_CASE(a_failed_run_of_a_filter_leaves_the_old_file) {
  const pe::testing::TempDir dir;
  const std::string file = dir.file("out", "old");
  const auto thrown = run_tool(kWriter, {"-o", file, "text"});
  BOOST_TEST(thrown.status == 1);
  BOOST_TEST(thrown.err.ends_with("writer: it: broke\n"));
  run_tool(kWriter, {"-o", file, "text", "2"});  // a wrong command line
  run_tool(kWriter, {"-o", file, "", "1"});      // nothing was written
  BOOST_TEST(content(file) == "old");
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  const std::string absent = dir / "absent" + "/out";
  BOOST_TEST(run_tool(kWriter, {"-o", absent, "text", "0"}).err ==
             "writer: " + absent + ": No such file or directory\n");
}

BOOST_AUTO_TEST_CASE(quiet_filters_report_only_errors) {
  BOOST_TEST(run_tool(kWriter, {"text", "0"}).err == "writer: a note\nwriter: an error\\x1b\n");
  BOOST_TEST(run_tool(kWriter, {"-q", "text", "0"}).err == "writer: an error\\x1b\n");
}

BOOST_AUTO_TEST_CASE(an_old_spelling_means_the_option_and_is_not_in_the_help) {
  BOOST_TEST(run_tool(kWriter, {"--colour", "red", "a ", "0"}).out == "a red");
  BOOST_TEST(
      run_tool(kWriter, {"--help"}).out ==
      "Usage: writer [FILE]...\nWrites.\n\nOptions:\n      --color NAME          colour\n  -o, "
      "--output FILE         write to FILE instead of standard output\n  -q, --quiet               "
      "print only errors, no summaries or warnings\n  -h, --help                print this help "
      "and exit\n  -V, --version             print the version and exit\n\nCompatibility with "
      "writer.pl:\n      --compat              as it\n\nMore in writer(1).\n");
}

BOOST_AUTO_TEST_CASE(help_lists_every_option_within_80_columns) {
  const auto r = run_tool(kFilter, {"--help"});
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out ==
             "Usage: filter [FILE]...\n"
             "Filters.\n"
             "\n"
             "Options:\n"
             "  -F, --freq HZ             how often\n"
             "  -q, --quiet               say less\n"
             "      --raw                 long name only\n"
             "  -h, --help                print this help and exit\n"
             "  -V, --version             print the version and exit\n"
             "\n"
             "More in filter(1).\n");
}

BOOST_AUTO_TEST_CASE(advice_names_the_tool_of_options_that_the_command_before_it_lacks) {
  pe::StringOutput out, err;
  const std::vector<std::string> hidden{"depth", "raw"};
  const pe::Io io{-1, out, err, "tool", false, hidden};
  io.report("cut: raise --depth, or use --freq or --depth-first; tool --raw and tool's --raw too");
  io.report("--raw");
  BOOST_TEST(err.text ==
             "tool: cut: raise tool's --depth, or use --freq or --depth-first; tool --raw and "
             "tool's --raw too\n"
             "tool: tool's --raw\n");
}

BOOST_AUTO_TEST_CASE(options_in_a_command_of_another_tool_are_that_tools) {
  pe::StringOutput out, err;
  const std::vector<std::string> hidden{"depth", "raw"};
  const pe::Io io{-1, out, err, "tool", false, hidden};
  io.report(
      "use --raw; to see it: pe-record --depth 1 -p PID --raw 2 | stackfold, or raise --depth");
  BOOST_TEST(
      err.text ==
      "tool: use tool's --raw; to see it: pe-record --depth 1 -p PID --raw 2 | stackfold, or "
      "raise tool's --depth\n");
}

BOOST_AUTO_TEST_CASE(the_variable_of_the_command_before_it_is_not_inherited) {
  constexpr pe::Tool kAdvises{.name = "advises",
                              .synopsis = "COMMAND",
                              .summary = "Advises.",
                              .add_options = add_options,
                              .work =
                                  [](const pe::CommandLine& /*line*/, pe::Io& io) {
                                    io.report("use --raw or --freq");
                                    return std::getenv("STACKPIPE_OPTIONS") == nullptr ? 0 : 1;
                                  },
                              .runs_command = true};
  ::setenv("STACKPIPE_OPTIONS", "freq help", 1);
  const auto r = run_tool(kAdvises, {"--", "true"});
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err == "advises: use advises's --raw or --freq\n");
  BOOST_TEST(run_tool(kAdvises, {"--", "true"}).err == "advises: use --raw or --freq\n");
}

BOOST_AUTO_TEST_SUITE_END()
