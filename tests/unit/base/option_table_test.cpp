// SPDX-License-Identifier: MIT
#include "completions/option_table.h"

#include <boost/test/unit_test.hpp>

#include "support/run_tool.h"
#include "support/string_output.h"

namespace po = boost::program_options;
using pe::testing::run_tool;

BOOST_AUTO_TEST_SUITE(option_table)

namespace {

enum class Size { kSmall, kLarge };

constexpr pe::Choice<Size> kSizes[] = {{"small", Size::kSmall}, {"large", Size::kLarge}};

void add_sized_options(po::options_description& options) {
  options.add_options()("size,s", pe::one_of("SIZE", kSizes), "how \"big\"")(
      "name", po::value<std::vector<std::string>>()->value_name("NAME"), "a name")("quiet",
                                                                                   "no word");
}

int report_size(const pe::CommandLine& line, pe::Io& io) {
  io.out.write(choose(line, "size", kSizes, Size::kSmall) == Size::kSmall ? "small" : "large");
  return 0;
}

constexpr pe::Tool kSized{"sized", "[FILE]...", "Sizes.", add_sized_options, report_size};

}  // namespace

BOOST_AUTO_TEST_CASE(tells_each_option_with_its_choices) {
  pe::StringOutput out;
  pe::JsonWriter json(out);
  pe::completions::write_option_table(kSized, json);
  BOOST_TEST(
      out.text ==
      R"({"name":"sized","summary":"Sizes.","runs_command":false,"options":[)"
      R"({"name":"size","letter":"s","value":"SIZE","choices":"small, large","repeats":false,"text":"how \"big\""},)"
      R"({"name":"name","letter":"","value":"NAME","choices":"","repeats":true,"text":"a name"},)"
      R"({"name":"quiet","letter":"","value":"","choices":"","repeats":false,"text":"no word"},)"
      R"({"name":"help","letter":"h","value":"","choices":"","repeats":false,"text":"print this help and exit"},)"
      R"({"name":"version","letter":"V","value":"","choices":"","repeats":false,"text":"print the version and exit"}]})");
}

BOOST_AUTO_TEST_CASE(a_choice_is_what_was_given_or_else_what_is_otherwise) {
  BOOST_TEST(run_tool(kSized, {"--size", "large"}).out == "large");
  BOOST_TEST(run_tool(kSized, {}).out == "small");
}

BOOST_AUTO_TEST_CASE(refuses_another_word_and_names_the_choices) {
  const auto r = run_tool(kSized, {"-s", "huge"});
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.err == "sized: --size: not one of small, large: 'huge' (see --help)\n");
}

BOOST_AUTO_TEST_SUITE_END()
