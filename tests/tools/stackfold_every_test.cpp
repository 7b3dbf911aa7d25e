// stackfold --every: counts divided by time.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/stackfold.h"
#include "support/stream_builder.h"
#include "support/temp_dir.h"

using pe::testing::Result;
using pe::testing::stackfold;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(stackfold_every)

namespace {

constexpr std::uint64_t kMs = 1'000'000, kSecond = 1'000'000'000;

Result every(const std::string& step, StreamBuilder stream,
             const std::vector<std::string>& args = {}) {
  std::vector<std::string> all{"--every", step};
  all.insert(all.end(), args.begin(), args.end());
  return stackfold(all, stream.round().text());
}

/// Samples of p at 100, 100.05 and 112.3 s, and of another event before them.
StreamBuilder cpu() {
  StreamBuilder stream;
  stream.event(7, "cpu-clock").event(8, "faults").comm(0, 1, 1, "p").comm(0, 2, 2, "q");
  stream.sample({.time_ns = 100 * kSecond - 250 * kMs, .id = 8})
      .sample({.time_ns = 100 * kSecond})
      .sample({.time_ns = 100 * kSecond + 50 * kMs, .pid = 2, .tid = 2})
      .sample({.time_ns = 100 * kSecond + 50 * kMs})
      .sample({.time_ns = 112 * kSecond + 60 * kMs});
  return stream;
}

StreamBuilder waits() {
  StreamBuilder stream;
  stream.event(7, "offcpu").unit(7, "ns").comm(0, 1, 1, "p");
  return stream;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_time_is_the_root_frame) {
  const auto r = every("100ms", cpu());
  BOOST_TEST(r.out == "@00.200;p 1\n@00.300;p 1\n@00.300;q 1\n@12.300;p 1\n");
  BOOST_TEST(r.status == 0);
}

BOOST_AUTO_TEST_CASE(the_choice_of_samples_does_not_move_the_times) {
  BOOST_TEST(every("100ms", cpu(), {"--include", "q"}).out == "@00.300;q 1\n");
  BOOST_TEST(every("100ms", cpu(), {"--event", "faults"}).out == "@00.000;p 1\n");
  BOOST_TEST(every("100ms", cpu(), {"--time", "112,"}).out == "@12.300;p 1\n");
  BOOST_TEST(every("1s", cpu(), {"--all-events"}).out ==
             "@00;cpu-clock;p 2\n@00;cpu-clock;q 1\n@00;faults;p 1\n@12;cpu-clock;p 1\n");
  BOOST_TEST(every("1s", cpu(), {"--recursive"}).out == "@00;p 2\n@00;q 1\n@12;p 1\n");
}

BOOST_AUTO_TEST_CASE(a_wait_is_shared_by_the_steps_that_it_covers) {
  auto stream = waits();
  stream.sample({.time_ns = kSecond, .period = kMs})
      .sample({.time_ns = kSecond + 250 * kMs + 1, .period = 201 * kMs});
  BOOST_TEST(every("100ms", stream).out ==
             "@0.000;p 50999.999\n@0.100;p 100000\n@0.200;p 51000.001\n");
  BOOST_TEST(every("100ms", stream, {"--weight", "period"}).out ==
             "@0.000;p 50999999\n@0.100;p 100000000\n@0.200;p 51000001\n");
  BOOST_TEST(every("100ms", stream, {"--weight", "samples"}).out == "@0.000;p 1\n@0.200;p 1\n");
}

BOOST_AUTO_TEST_CASE(a_wait_older_than_its_clock_counts_when_it_ended) {
  auto stream = waits();
  stream.sample({.time_ns = 1000, .period = 5000});
  BOOST_TEST(every("1us", stream).out == "@0.000000;p 5\n");
}

BOOST_AUTO_TEST_CASE(allocations_have_times) {
  StreamBuilder stream;
  stream.event(7, "alloc").unit(7, "bytes").comm(0, 1, 1, "p");
  stream.sample({.time_ns = kSecond, .period = 64})
      .sample({.time_ns = 2 * kSecond, .period = 32})
      .sample({.time_ns = 2 * kSecond, .period = 32});
  BOOST_TEST(every("1s", stream).out == "@0;p 64\n@1;p 64\n");
}

BOOST_AUTO_TEST_CASE(lost_samples_are_where_they_were_lost) {
  auto stream = cpu();
  stream.lost(113 * kSecond, 3).lost(113 * kSecond, 4).lost(0, 100);
  const auto r = every("1s", stream);
  BOOST_TEST(r.out == "@00;p 2\n@00;q 1\n@12;p 1\n@13;[lost samples] 7\n");
  BOOST_TEST(r.err.find("100 samples lost while recording") == std::string::npos);
  BOOST_TEST(r.err.find("7 samples lost") != std::string::npos);
  BOOST_TEST(every("1s", stream, {"--event", "faults"}).out == "@00;p 1\n");
  BOOST_TEST(every("1s", stream, {"--time", ",112.5"}).out == "@00;p 2\n@00;q 1\n@12;p 1\n");
  auto in_us = waits();
  in_us.sample({.time_ns = kSecond, .period = kMs}).lost(kSecond, 3);
  BOOST_TEST(every("1s", in_us).out == "@0;p 1000\n");
}

BOOST_AUTO_TEST_CASE(several_streams_share_one_clock) {
  const pe::testing::TempDir dir;
  auto early = waits();
  early.sample({.time_ns = 99 * kSecond, .period = kSecond});
  const auto first = dir.file("first", cpu().round().text());
  const auto second = dir.file("second", early.round().text());
  const auto both = stackfold({"--every", "1s", first, second});
  BOOST_TEST(both.out == "@00;p 750000\n@01;p 250000\n@02;p 2\n@02;q 1\n@14;p 1\n");
  BOOST_TEST(
      both.err.find("second counts us, an earlier input samples: their sum is meaningless") !=
      std::string::npos);
  for (const char* weight : {"period", "samples"})
    BOOST_TEST(stackfold({"--weight", weight, first, second}).err.find("is meaningless") ==
                   std::string::npos,
               weight);
  BOOST_TEST(stackfold({"--event", "cpu-clock", first, first}).err.find("is meaningless") ==
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_times_of_texts_are_read) {
  const std::string perf =
      "prog  12/34 [000] 10.000001: 5 cycles: \n\t1f a (/x)\n\n"
      "prog  12/34 9.999999: 5 cycles: \n\t1f a (/x)\n\n"
      "prog  12/34 cycles: \n\t1f b (/x)\n\n";
  const auto r = stackfold({"--every", "1us"}, perf);
  BOOST_TEST(r.out == "@0.000000;prog;a 5\n@0.000002;prog;a 5\n");
  BOOST_TEST(r.err == "stackfold: stdin: 2 samples read; 1 sample without a time left out\n");
  const std::string simpleperf =
      "sample:\n  event_type: cpu-cycles\n  time: 5000000000\n  event_count: 2\n"
      "  thread_name: t\n  vaddr_in_file: 1\n  file: /x\n  symbol: f\n"
      "sample:\n  event_type: cpu-cycles\n  time: 6500000000\n  event_count: 3\n"
      "  thread_name: t\n  vaddr_in_file: 1\n  file: /x\n  symbol: f\n";
  BOOST_TEST(stackfold({"--every", "500ms"}, simpleperf).out == "@0.000;t;f 2\n@1.500;t;f 3\n");
}

BOOST_AUTO_TEST_CASE(an_input_without_times_is_refused_with_the_reason) {
  const auto no_times = stackfold({"--every", "1s"}, "p;main 3\n");
  BOOST_TEST(no_times.err == "stackfold: stdin: --every: folded text has no times\n");
  BOOST_TEST(no_times.status == 1);
  const auto none_has = stackfold({"--every", "1s"}, "prog 12/34 cycles: \n\t1f a (/x)\n\n");
  BOOST_TEST(none_has.err == "stackfold: stdin: --every: no sample has a time\n");
  BOOST_TEST(none_has.status == 1);
  StreamBuilder stream;
  stream.event().comm(0, 1, 1, "p").sample({.time_ns = 0});
  const auto stream_without = every("1s", stream);
  BOOST_TEST(stream_without.err == "stackfold: stdin: --every: no sample has a time\n");
  BOOST_TEST(stream_without.status == 1);
}

BOOST_AUTO_TEST_CASE(times_too_far_apart_for_the_step_are_refused) {
  const auto r = every("1us", cpu());
  BOOST_TEST(r.err ==
             "stackfold: --every: more than 1000000 steps from the first sample to the last "
             "(choose a longer step)\n");
  BOOST_TEST(r.status == 1);
}

BOOST_AUTO_TEST_CASE(other_steps_and_combinations_are_usage_errors) {
  for (const char* step : {"", "0s", "1", "1d", "-1s", "61m"})
    BOOST_TEST(stackfold({"--every", step}, "").status == 2, step);
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--compat"}, {"--to", "pprof"}, {"--merge-sorted"}}) {
    std::vector<std::string> args{"--every", "1s"};
    args.insert(args.end(), more.begin(), more.end());
    BOOST_TEST(stackfold(args, "").status == 2, more[0]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
