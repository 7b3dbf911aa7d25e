// stackfold --span and --longer: the samples inside slow calls.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "stackfold/slow_calls.h"
#include "support/stackfold.h"
#include "support/stream_builder.h"

using pe::fold::duration_class;
using pe::testing::Result;
using pe::testing::stackfold;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(stackfold_spans)

namespace {

constexpr std::uint64_t kUs = 1'000, kMs = 1'000'000, kSecond = 1'000'000'000;

StreamBuilder calls() {
  StreamBuilder stream;
  stream.event().calls_of("handle").comm(0, 1, 1, "p");
  return stream;
}

/// A call of 1 ms, one of 60 ms, and samples in and between them.
StreamBuilder fast_and_slow() {
  StreamBuilder stream = calls();
  stream.enter({.time_ns = 10 * kMs})
      .sample({.time_ns = 10 * kMs + kUs, .chain = {0x10}})
      .leave({.time_ns = 11 * kMs})
      .sample({.time_ns = 15 * kMs, .chain = {0x20}})
      .enter({.time_ns = 20 * kMs})
      .sample({.time_ns = 30 * kMs, .chain = {0x30}})
      .sample({.time_ns = 40 * kMs, .chain = {0x30}})
      .sample({.time_ns = 50 * kMs, .chain = {0x40}})
      .leave({.time_ns = 80 * kMs});
  return stream;
}

Result span(StreamBuilder stream, const std::vector<std::string>& args) {
  std::vector<std::string> all{"--unnamed", "unknown"};
  all.insert(all.end(), args.begin(), args.end());
  return stackfold(all, stream.round().text());
}

/// A stream whose addresses have the names a, b, c and d.
StreamBuilder named(StreamBuilder stream) {
  StreamBuilder all;
  std::uint64_t id = 1;
  all.event().calls_of("handle").comm(0, 1, 1, "p");
  for (const char* name : {"a", "b", "c", "d"}) {
    all.symbol({.id = id, .name = name, .module = "", .file = ""}).location(1, 0x10 * id, {id});
    ++id;
  }
  // The rest of the stream, after its own head.
  const std::string head = calls().text();
  all.bytes(std::string_view(stream.text()).substr(head.size()));
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(keeps_the_samples_inside_slow_calls) {
  const Result r = span(named(fast_and_slow()), {"--span", "handle", "--longer", "50ms"});
  BOOST_TEST(r.out == "handle [50-100 ms];p;c 2\nhandle [50-100 ms];p;d 1\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: handle: 1 of 2 calls took longer than 50 ms; left out: 1 sample of "
             "shorter calls, 1 sample outside calls\n");
  BOOST_TEST(r.status == 0);
}

BOOST_AUTO_TEST_CASE(without_a_limit_all_calls_are_kept) {
  const Result r = span(named(fast_and_slow()), {"--span", "handle"});
  BOOST_TEST(r.out ==
             "handle [1-2 ms];p;a 1\nhandle [50-100 ms];p;c 2\nhandle [50-100 ms];p;d 1\n");
  BOOST_TEST(r.err == "stackfold: stdin: handle: 2 calls; left out: 1 sample outside calls\n");
}

BOOST_AUTO_TEST_CASE(the_only_function_needs_no_name) {
  const Result none = span(named(fast_and_slow()), {"--longer", "1s"});
  BOOST_TEST(none.out.empty());
  BOOST_TEST(
      none.err.starts_with("stackfold: stdin: handle: 0 of 2 calls took longer than 1 s (the "
                           "longest took 0.060 s); left out: 4 samples of shorter calls"),
      none.err);
  BOOST_TEST(span(named(fast_and_slow()), {"--longer", "59ms"}).out ==
             "handle [50-100 ms];p;c 2\nhandle [50-100 ms];p;d 1\n");
}

BOOST_AUTO_TEST_CASE(other_threads_are_left_out) {
  StreamBuilder stream = calls();
  stream.enter({.time_ns = 10 * kMs})
      .sample({.time_ns = 20 * kMs, .tid = 2, .chain = {0x10}})
      .sample({.time_ns = 20 * kMs, .chain = {0x20}})
      .leave({.time_ns = 80 * kMs});
  BOOST_TEST(span(named(stream), {"--span", "handle"}).out == "handle [50-100 ms];p;b 1\n");
}

BOOST_AUTO_TEST_CASE(waits_inside_calls_keep_their_time) {
  StreamBuilder stream;
  stream.event(7, "offcpu").unit(7, "ns").calls_of("handle").comm(0, 1, 1, "p");
  stream.enter({.time_ns = 10 * kMs})
      .sample({.time_ns = 60 * kMs, .period = 40 * kMs})
      .leave({.time_ns = 80 * kMs})
      .sample({.time_ns = 90 * kMs, .period = 5 * kMs});
  BOOST_TEST(span(stream, {"--span", "handle"}).out == "handle [50-100 ms];p 40000\n");
}

BOOST_AUTO_TEST_CASE(the_time_of_every_is_the_root) {
  StreamBuilder stream = calls();
  stream.enter({.time_ns = kSecond})
      .sample({.time_ns = kSecond})
      .sample({.time_ns = 3 * kSecond})
      .leave({.time_ns = 4 * kSecond});
  BOOST_TEST(span(stream, {"--span", "handle", "--every", "1s"}).out ==
             "@0;handle [2-5 s];p 1\n@2;handle [2-5 s];p 1\n");
}

BOOST_AUTO_TEST_CASE(calls_that_never_returned_are_left_out_and_counted) {
  StreamBuilder stream = calls();
  stream.enter({.time_ns = 10 * kMs, .stack_pointer = 0xf00})
      .sample({.time_ns = 20 * kMs})
      .enter({.time_ns = 30 * kMs, .stack_pointer = 0x1000})
      .sample({.time_ns = 40 * kMs})
      .leave({.time_ns = 50 * kMs, .stack_pointer = 0x1000});
  const Result r = span(stream, {"--span", "handle"});
  BOOST_TEST(r.out == "handle [20-50 ms];p 1\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: handle: 2 calls, 1 never returned (longjmp, exceptions); left "
             "out: 1 sample since the start of calls whose end is unknown\n");
}

BOOST_AUTO_TEST_CASE(an_open_call_has_lasted_until_the_end) {
  StreamBuilder stream = calls();
  stream.enter({.time_ns = 10 * kMs}).sample({.time_ns = 80 * kMs});
  const Result r = span(stream, {"--span", "handle", "--longer", "50ms"});
  BOOST_TEST(r.out == "handle [50-100 ms];p 1\n");
  BOOST_TEST(r.err ==
             "stackfold: stdin: handle: 1 of 1 call took longer than 50 ms, 1 still open at the "
             "end\n");
}

BOOST_AUTO_TEST_CASE(calls_are_no_samples) {
  const Result r = span(named(fast_and_slow()), {});
  BOOST_TEST(r.out == "p;a 1\np;b 1\np;c 2\np;d 1\n");
  BOOST_TEST(r.err.empty());
  BOOST_TEST(span(named(fast_and_slow()), {"--all-events"}).out ==
             "cpu-clock;p;a 1\ncpu-clock;p;b 1\ncpu-clock;p;c 2\ncpu-clock;p;d 1\n");
}

BOOST_AUTO_TEST_CASE(a_function_must_have_been_recorded) {
  const Result none = span(StreamBuilder(StreamBuilder().event().sample({})), {"--span", "f"});
  BOOST_TEST(none.status == 1);
  BOOST_TEST(none.err ==
             "stackfold: stdin: the recording has no calls (record them: pe-record --span "
             "FUNC)\n");
  const Result other = span(fast_and_slow(), {"--span", "f"});
  BOOST_TEST(other.status == 1);
  BOOST_TEST(other.err == "stackfold: stdin: no calls to 'f' in the recording (it has handle)\n");
  StreamBuilder two = calls();
  two.calls_of("g", 30).sample({});
  BOOST_TEST(span(two, {"--longer", "1ms"}).err ==
             "stackfold: stdin: --longer: choose a function with --span: handle, g\n");
}

BOOST_AUTO_TEST_CASE(a_path_may_be_left_out) {
  StreamBuilder stream;
  stream.event().calls_of("/usr/bin/p:handle").comm(0, 1, 1, "p");
  stream.enter({.time_ns = kMs}).sample({.time_ns = 2 * kMs}).leave({.time_ns = 3 * kMs});
  BOOST_TEST(span(stream, {"--span", "handle"}).out == "handle [2-5 ms];p 1\n");
  BOOST_TEST(span(stream, {"--span", "/usr/bin/p:handle"}).out == "handle [2-5 ms];p 1\n");
}

BOOST_AUTO_TEST_CASE(refuses_other_times_and_texts) {
  BOOST_TEST(stackfold({"--longer", "5x"}).err ==
             "stackfold: --longer: not a time such as 500us, 50ms or 1s: '5x' (see --help)\n");
  BOOST_TEST(stackfold({"--span", "f"}, "a;b 1\n").err ==
             "stackfold: stdin: --span: folded text has no calls (record them: pe-record --span "
             "FUNC)\n");
  BOOST_TEST(stackfold({"--span", "f", "--to", "pprof"}).status == 2);
}

BOOST_AUTO_TEST_CASE(classes_of_duration_are_steps_of_1_2_and_5) {
  BOOST_TEST(duration_class(0) == "0-1 us");
  BOOST_TEST(duration_class(999) == "0-1 us");
  BOOST_TEST(duration_class(kUs) == "1-2 us");
  BOOST_TEST(duration_class(499 * kUs) == "200-500 us");
  BOOST_TEST(duration_class(999'999) == "500-1000 us");
  BOOST_TEST(duration_class(kMs) == "1-2 ms");
  BOOST_TEST(duration_class(50 * kMs) == "50-100 ms");
  BOOST_TEST(duration_class(kSecond) == "1-2 s");
  BOOST_TEST(duration_class(~std::uint64_t{0}) == "10000000000-20000000000 s");
}

BOOST_AUTO_TEST_SUITE_END()
