// SPDX-License-Identifier: MIT
#include <boost/program_options/options_description.hpp>
#include <boost/test/unit_test.hpp>

#include "stackfold/options.h"
#include "stackfold/perl.h"
#include "support/stackfold.h"
#include "support/stream_builder.h"

using pe::stream::parse_seconds_us;
using pe::testing::Result;
using pe::testing::StreamBuilder;

using pe::testing::stackfold;

BOOST_AUTO_TEST_SUITE(stackfold_options)

namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kFolded = "p;main;fib;fib;fib 3\np;main;fib 2\np;main;idle 5.5\nq 1\n";

/// Two samples that are a second apart, and a sample of another event.
constexpr std::string_view kText =
    "prog  12/34 [000] 10.000001: 5 cycles: \n\t1f a (/x)\n\t1f a (/x)\n\n"
    "prog  12/34 11.000001999: 5 cycles: \n\t1f b (/x)\n\n"
    "prog  12/34 [000] 99.5: 5 faults: \n\t1f c (/x)\n\n";

}  // namespace

BOOST_AUTO_TEST_CASE(recursion_becomes_one_frame_and_equal_stacks_are_merged) {
  BOOST_TEST(stackfold({"--recursive"}, kFolded).out == "p;main;fib 5\np;main;idle 5.5\nq 1\n");
  BOOST_TEST(stackfold({"--recursive"}, "a;b;a;b 1\n").out == "a;b;a;b 1\n");
  BOOST_TEST(stackfold({"--recursive"}, kText).out == "prog;a 5\nprog;b 5\n");
}

BOOST_AUTO_TEST_CASE(frames_without_a_name_are_called_as_asked) {
  using pe::stream::kSymbolUnresolved;
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "p").map(0, 1, 0x5000, 0x1000, 0, "/usr/lib/libx.so");
  stream.symbol({.id = 1, .name = "main", .module = "/bin/p"});
  stream.symbol({.id = 2, .flags = kSymbolUnresolved, .name = "p+0x10", .module = "/bin/p"});
  stream.symbol({.id = 3, .flags = kSymbolUnresolved, .name = "[unknown]", .module = "//anon"});
  stream.location(1, 0x1000, {1}).location(1, 0x1fff, {2}).location(1, 0x2fff, {3});
  stream.sample({.chain = {0x1000, 0x2000, 0x3000, 0x5011}}).round();
  const auto told = [&](const Words& args) { return stackfold(args, stream.text()).out; };
  BOOST_TEST(told({}) == "p;libx.so+0x10;[unknown];p+0x10;main 1\n");
  BOOST_TEST(told({"--unnamed", "place"}) == told({}));
  BOOST_TEST(told({"--unnamed", "module"}) == "p;[libx.so];[unknown];[p];main 1\n");
  BOOST_TEST(told({"--unnamed", "unknown"}) == "p;[unknown];main 1\n");
  BOOST_TEST(stackfold({"--unnamed", "x"}, "").err ==
             "stackfold: --unnamed: not one of place, module, unknown: 'x' (see --help)\n");
}

BOOST_AUTO_TEST_CASE(include_keeps_stacks_with_a_frame_that_matches_one_of_the_expressions) {
  const auto r = stackfold({"--include", "^fib$"}, kFolded);
  BOOST_TEST(r.out == "p;main;fib 2\np;main;fib;fib;fib 3\n");
  BOOST_TEST(r.err ==
             "stackfold: --include, --exclude: 2 of 4 different stacks left out: a count of 6.5 of "
             "11.5\n");
  BOOST_TEST(stackfold({"--include", "idl", "--include=^q"}, kFolded).out ==
             "p;main;idle 5.5\nq 1\n");
}

BOOST_AUTO_TEST_CASE(exclude_drops_them_and_beats_include) {
  BOOST_TEST(stackfold({"--exclude", "idle|q"}, kFolded).out ==
             "p;main;fib 2\np;main;fib;fib;fib 3\n");
  BOOST_TEST(stackfold({"--exclude", "fib", "--include", "p"}, kFolded).out == "p;main;idle 5.5\n");
  BOOST_TEST(stackfold({"--exclude", "nowhere"}, kFolded).err == "");
}

BOOST_AUTO_TEST_CASE(an_expression_sees_one_frame_at_a_time) {
  BOOST_TEST(stackfold({"--include", "main;fib"}, kFolded).out == "");
}

BOOST_AUTO_TEST_CASE(a_bad_expression_is_a_usage_error_with_its_option) {
  const auto r = stackfold({"--exclude", "f("}, kFolded);
  BOOST_TEST(r.status == 2);
  BOOST_TEST(r.err ==
             "stackfold: --exclude: not a regular expression: 'f(': missing ): f( (see --help)\n");
}

BOOST_AUTO_TEST_CASE(hostile_names_and_expressions_take_no_time_and_no_stack) {
  const std::string name(1'000'000, 'a');
  BOOST_TEST(stackfold({"--include", "(a|aa)+$"}, "p;" + name + "b 1\n").out == "");
  BOOST_TEST(stackfold({"--include", "(a|aa)*b"}, "p;" + name + "b 1\n").status == 0);
}

BOOST_AUTO_TEST_CASE(names_that_are_no_utf8_are_matched_as_well) {
  BOOST_TEST(stackfold({"--include", "tail$"}, "p;\xff\xc3tail 1\n").out == "p;\xff\xc3tail 1\n");
}

BOOST_AUTO_TEST_CASE(a_stream_is_filtered_as_text_is) {
  auto stream = StreamBuilder();
  stream.event()
      .comm(0, 1, 1, "p")
      .comm(0, 2, 2, "q")
      .sample({.pid = 1})
      .sample({.pid = 2, .tid = 2});
  BOOST_TEST(stackfold({"--exclude", "^q$"}, stream.round().text()).out == "p 1\n");
}

BOOST_AUTO_TEST_CASE(times_are_those_that_perf_script_prints) {
  BOOST_TEST(stackfold({"--time", "10.000001,11"}, kText).out == "prog;a;a 5\n");
  BOOST_TEST(stackfold({"--time", ",11.000001"}, kText).out == "prog;a;a 5\nprog;b 5\n");
  const auto r = stackfold({"--time=10.5,"}, kText);
  BOOST_TEST(r.out == "prog;b 5\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: 1 sample read; 1 sample of other events left out (folded: cycles; "
             "others: stackfold --event NAME), 1 sample outside --time left out\n");
}

BOOST_AUTO_TEST_CASE(times_of_a_stream_are_on_the_same_clock) {
  auto stream = StreamBuilder();
  stream.event().comm(1, 1, 1, "p").sample({.time_ns = 10'000'001'999});
  stream.comm(10'000'002'000, 1, 1, "q").sample({.time_ns = 11'000'001'000});
  const std::string text{stream.round().text()};
  BOOST_TEST(stackfold({"--time", "10.000001,10.000001"}, text).out == "p 1\n");
  const auto r = stackfold({"--time", "10.000002,"}, text);
  BOOST_TEST(r.out == "q 1\n");
  BOOST_TEST(r.err == "stackfold: stdin: 2 samples read; 1 sample outside --time left out\n");
}

BOOST_AUTO_TEST_CASE(samples_without_a_time_are_left_out_and_counted) {
  const auto r = stackfold({"--time", "1,2"}, "prog 12/34 cycles: \n\t1f a (/x)\n\n");
  BOOST_TEST(r.out == "");
  BOOST_TEST(r.err == "stackfold: stdin: 0 samples read; 1 sample without a time left out\n");
  const auto folded = stackfold({"--time", "1,2"}, kFolded);
  BOOST_TEST(folded.status == 1);
  BOOST_TEST(folded.err == "stackfold: stdin: --time: folded text has no times\n");
}

BOOST_AUTO_TEST_CASE(other_text_is_no_range_of_times) {
  for (const char* range :
       {"", ",", "a,b", "1,2,3", "-1,2", "10%,20%", "1e3,", "2,1", "99999999999999999999,"})
    BOOST_TEST(stackfold({"--time", range}, "").status == 2, range);
  BOOST_TEST(stackfold({"--time", "2,1"}, "").err ==
             "stackfold: --time: ends before it begins: '2,1' (see --help)\n");
  BOOST_TEST(*parse_seconds_us("184694.229089") == 184694229089U);
  BOOST_TEST(!parse_seconds_us("18446744073709.551616"));
  BOOST_TEST(*parse_seconds_us("18446744073709.551615") == UINT64_MAX);
}

BOOST_AUTO_TEST_CASE(old_and_perl_spellings_are_accepted) {
  BOOST_TEST(stackfold({"--event-filter=faults"}, kText).out == "prog;c 5\n");
  BOOST_TEST(stackfold({"--event=faults", "--event-filter=faults"}, kText).status == 2);
  for (const char* lines : {"--lines", "--srcline"})
    BOOST_TEST(stackfold({lines}, kText).out == "prog;a;a 5\nprog;b 5\n");
  const std::string help = stackfold({"--help"}, "").out;
  for (const char* hidden : {"--event-filter", "--srcline"})
    BOOST_TEST(help.find(hidden) == std::string::npos);
  BOOST_TEST(stackfold({"--compat", "--event-filter", ""}, kText).out == "prog;a;a 5\nprog;b 5\n");
}

BOOST_AUTO_TEST_CASE(every_option_of_the_scripts_is_one_of_ours) {
  boost::program_options::options_description ours;
  pe::fold::add_options(ours);
  pe::fold::add_compatible_options(ours);
  for (const auto& script : pe::fold::kPerlNames)
    for (const auto& option : script.options)
      BOOST_TEST((ours.find_nothrow(std::string(our_name(option)), false) != nullptr), option.name);
}

BOOST_AUTO_TEST_SUITE_END()
