// SPDX-License-Identifier: MIT

#include <boost/test/unit_test.hpp>
#include <span>

#include "stackfold/gzip.h"
#include "stream/records/sample.h"
#include "support/facts.h"
#include "support/memory_input.h"
#include "support/stackfold.h"
#include "support/stream_builder.h"

using pe::stream::kKernelPid;
using pe::testing::stackfold;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(stackfold_export)

namespace {

constexpr auto kUser = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
constexpr auto kKernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);

/// Two processes of one program, which is mapped at different addresses; "tiny" is inlined into
/// main.
StreamBuilder two_processes() {
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "one").comm(0, 2, 2, "two;\"");
  stream.map(0, 1, 0x1000, 0x1000, 0, "/bin/p").map(0, 2, 0x5000, 0x1000, 0, "/bin/p");
  stream.symbol({.id = 1, .flags = 0, .line = 7, .name = "main", .module = "/bin/p", .file = "p.c"})
      .symbol({.id = 2, .flags = pe::stream::kSymbolInlined, .name = "tiny;\n", .module = "/bin/p"})
      .symbol(
          {.id = 3, .flags = pe::stream::kSymbolKernel, .name = "sys_read", .module = "[kernel]"})
      .location(1, 0x10ff, {2, 1})
      .location(2, 0x50ff, {2, 1})
      .location(kKernelPid, 0xffff'ffff'8100'0000, {3});
  for (const std::uint32_t pid : {1U, 2U})
    stream.sample(
        {.time_ns = 1'000'000 * pid,
         .pid = pid,
         .tid = pid,
         .chain = {kKernel, 0xffff'ffff'8100'0000, kUser, 0x9234, pid == 1 ? 0x1100U : 0x5100U},
         .period = 1'000'000});
  return stream;
}

/// Checks that the profile folds to the same text as the stream that it was made from.
void check_comes_back(const StreamBuilder& made, const std::vector<std::string>& options) {
  StreamBuilder stream = made;
  const std::string text = stream.round().text();
  const auto profile = stackfold({"--to", "pprof"}, text);
  BOOST_TEST(profile.status == 0);
  BOOST_TEST(stackfold(options, profile.out).out ==
             pe::testing::without_facts(stackfold(options, text).out));
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string unpacked(const std::string& gzip) {
  auto input = pe::testing::memory_input(gzip);
  pe::GzipReader reader(input);
  std::string bytes(1U << 16U, '\0');
  bytes.resize(reader.read(std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_pprof_profile_comes_back_as_the_stream_is_folded) {
  check_comes_back(two_processes(), {});
  check_comes_back(two_processes(), {"--annotate", "--tid"});
}

BOOST_AUTO_TEST_CASE(a_thread_that_ended_before_its_sample_has_the_number_minus_one) {
  StreamBuilder stream;
  constexpr auto kEnded = static_cast<std::uint32_t>(-1);
  stream.event().sample({.pid = kEnded, .tid = kEnded, .chain = {kUser, 0x1100}});
  check_comes_back(stream, {"--tid"});
  const std::string text = stream.round().text();
  BOOST_TEST(holds(stackfold({}, text).out, ":-1;[unknown] 1\n"));
  BOOST_TEST(holds(stackfold({"--tid"}, text).out, ":-1--1/-1;[unknown] 1\n"));
  for (const char* form : {"speedscope", "firefox"}) {
    const std::string profile = stackfold({"--to", form}, text).out;
    BOOST_TEST(holds(profile, ":-1"), form);
    BOOST_TEST(!holds(profile, "4294967295"), form);
  }
}

BOOST_AUTO_TEST_CASE(there_is_no_profile_without_a_stack) {
  StreamBuilder nothing;
  const auto r = stackfold({"--to", "pprof"}, nothing.event().round().text());
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.out == "");
  BOOST_TEST(
      holds(r.err, "stackfold: --to: no stack in the input, so there is no profile to write\n"));
}

BOOST_AUTO_TEST_CASE(addresses_that_were_mapped_anew_are_other_places) {
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "p").map(1, 1, 0x1000, 0x1000, 0, "/lib/a.so");
  stream.sample({.time_ns = 2, .chain = {kUser, 0x1010}});
  stream.map(3, 1, 0x1000, 0x1000, 0x8000, "/lib/b.so");
  stream.sample({.time_ns = 4, .chain = {kUser, 0x1010}});
  StreamBuilder copy = stream;
  BOOST_TEST(stackfold({}, copy.round().text()).out == "p;a.so+0x10 1\np;b.so+0x8010 1\n");
  check_comes_back(stream, {});
}

BOOST_AUTO_TEST_CASE(each_event_is_a_number_of_its_own) {
  StreamBuilder stream;
  stream.event(7, "live").unit(7, "bytes").event(8, "waits").unit(8, "ns").comm(0, 1, 1, "p");
  stream.symbol({.id = 1, .name = "f", .module = "/p"}).location(1, 0x10, {1});
  stream.sample({.time_ns = 1, .chain = {kUser, 0x10}, .id = 7, .period = 100});
  stream.sample({.time_ns = 2, .chain = {kUser, 0x10}, .id = 8, .period = 5000});
  const std::string text = stream.round().text();
  const auto profile = stackfold({"--to", "pprof"}, text);
  BOOST_TEST(profile.err == "");
  BOOST_TEST(stackfold({}, profile.out).out == "p;f 100\n");
  BOOST_TEST(stackfold({"--event", "waits"}, profile.out).out == "p;f 5\n");
  BOOST_TEST(stackfold({"--event", "waits-contentions"}, profile.out).out == "p;f 1\n");
  const auto one = stackfold({"--to", "pprof", "--event", "waits"}, text);
  BOOST_TEST(stackfold({}, one.out).out == "p;f 5\n");
  BOOST_TEST(one.err == "");
}

BOOST_AUTO_TEST_CASE(speedscope_has_all_threads_and_each) {
  auto stream = two_processes();
  const auto r = stackfold({"--to", "speedscope"}, stream.round().text());
  BOOST_TEST(r.status == 0);
  BOOST_TEST(
      r.out ==
      R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"stackpipe","activeProfileIndex":0,"shared":{"frames":[
{"name":"sys_read"},
{"name":"[unknown]"},
{"name":"tiny;\n"},
{"name":"main","file":"p.c"},
{"name":"one"},
{"name":"two:\""}]},"profiles":[
{"type":"sampled","name":"cpu-clock","unit":"nanoseconds","startValue":0,"endValue":2000000,"samples":[[4,3,2,1,0],[5,3,2,1,0]],"weights":[1000000,1000000]},
{"type":"sampled","name":"one 1/1","unit":"nanoseconds","startValue":0,"endValue":1000000,"samples":[[3,2,1,0]],"weights":[1000000]},
{"type":"sampled","name":"two;\" 2/2","unit":"nanoseconds","startValue":0,"endValue":1000000,"samples":[[3,2,1,0]],"weights":[1000000]}]}
)");
}

BOOST_AUTO_TEST_CASE(the_firefox_profiler_gets_threads_with_times) {
  auto stream = two_processes();
  const auto r = stackfold({"--to", "firefox"}, stream.round().text());
  BOOST_TEST(r.status == 0);
  BOOST_TEST(holds(r.out, R"("preprocessedProfileVersion":60)"));
  // The frames: main, tiny inlined into it, an unknown function, the kernel.  Both processes share
  // them.
  BOOST_TEST(holds(r.out, R"("stackTable":{"length":4,"frame":[0,1,2,3],"prefix":[null,0,1,2]})"));
  BOOST_TEST(holds(r.out, R"("inlineDepth":[0,1,0,0])"));
  BOOST_TEST(holds(r.out, R"("line":[7,null,null,null])"));
  BOOST_TEST(holds(r.out, R"("name":"one","processName":"one")"));
  BOOST_TEST(holds(r.out, R"("pid":"2","tid":"2")"));
  BOOST_TEST(holds(
      r.out,
      R"("samples":{"length":1,"stack":[3],"time":[1],"weight":null,"weightType":"samples"})"));
}

BOOST_AUTO_TEST_CASE(folded_text_has_names_alone) {
  const auto r = stackfold({"--to", "speedscope"}, "a;b 2\na 1\n");
  BOOST_TEST(holds(r.out, R"("samples":[[1,0],[1]],"weights":[2,1])"));
  BOOST_TEST(stackfold({}, stackfold({"--to", "pprof"}, "a;b 2\na 1\n").out).out == "a 1\na;b 2\n");
}

BOOST_AUTO_TEST_CASE(a_streams_names_keep_their_control_characters_there) {
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "p\x1b").map(0, 1, 0x1000, 0x1000, 0, "/bin/p");
  stream.symbol({.id = 1, .name = "tab\there\x01;", .module = "/bin/p"}).location(1, 0x1010, {1});
  stream.sample({.time_ns = 1, .chain = {kUser, 0x1010}});
  const std::string text = stream.round().text();
  const std::string profile = unpacked(stackfold({"--to", "pprof"}, text).out);
  BOOST_TEST(holds(profile, "tab\there\x01;"));
  BOOST_TEST(holds(profile, "p\x1b"));
  BOOST_TEST(stackfold({}, text).out == "p?;tab?here?: 1\n");
}

BOOST_AUTO_TEST_CASE(fractions_are_exact_in_a_smaller_unit) {
  const auto r = stackfold({"--to", "speedscope"}, "a 0.001\nb 2.4\n");
  BOOST_TEST(holds(r.out, R"("weights":[1,2400])"));
  BOOST_TEST(r.err == "stackfold: counts have fractions: the profile is in thousandths\n");
  const std::string pprof = stackfold({"--to", "pprof"}, "a 0.000000001\nb 2\n").out;
  BOOST_TEST(stackfold({}, pprof).out == "a 1\nb 2000000000\n");
  BOOST_TEST(stackfold({"--event", "samples/billionths"}, pprof).status == 0);
}

BOOST_AUTO_TEST_CASE(fractions_are_rounded_where_63_bits_do_not_hold_a_smaller_unit) {
  const auto r = stackfold({"--to", "speedscope"}, "a 9000000000000000000\nb 0.25\nc 2.4\n");
  BOOST_TEST(holds(r.out, R"("weights":[9000000000000000000,1,2])"));
  BOOST_TEST(r.err == "stackfold: 2 counts rounded to whole numbers\n");
}

BOOST_AUTO_TEST_CASE(names_are_valid_utf8_there) {
  const std::string profile = stackfold({"--to", "pprof"}, "a;\xff\xe2\x82\xac\xc3 1\n").out;
  BOOST_TEST(stackfold({}, profile).out == "a;\xef\xbf\xbd\xe2\x82\xac\xef\xbf\xbd 1\n");
}

BOOST_AUTO_TEST_CASE(stacks_can_be_chosen) {
  auto stream = two_processes();
  const std::string text = stream.round().text();
  const auto r = stackfold({"--to", "pprof", "--include", "^one$"}, text);
  BOOST_TEST(r.err == "stackfold: --include, --exclude: 1 of 2 different stacks left out\n");
  BOOST_TEST(stackfold({}, r.out).out == stackfold({"--include", "^one$"}, text).out);
}

BOOST_AUTO_TEST_CASE(what_shapes_folded_text_is_refused) {
  BOOST_TEST(stackfold({"--to", "pprof", "--all-events"}, "").status == 2);
  BOOST_TEST(stackfold({"--to", "gif"}, "").err ==
             "stackfold: --to: not one of pprof, speedscope, firefox: 'gif' (see --help)\n");
  auto stream = two_processes();
  BOOST_TEST(stackfold({"--to", "pprof", "--recursive"}, stream.round().text()).status == 1);
}

BOOST_AUTO_TEST_SUITE_END()
