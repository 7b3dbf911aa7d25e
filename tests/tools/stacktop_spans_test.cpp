// stacktop --spans: the durations of calls in a sample stream.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "stacktop/span_report.h"
#include "support/stacktop.h"
#include "support/stream_builder.h"

using pe::stacktop::Durations;
using pe::testing::Result;
using pe::testing::stacktop;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(stacktop_spans)

namespace {

constexpr std::uint64_t kMs = 1'000'000;

Result spans(StreamBuilder stream, std::vector<std::string> args = {}) {
  args.emplace_back("--spans");
  return stacktop(args, stream.round().text());
}

/// Calls of 1 to 4 ms and one of 10 ms; 5 ms of the last are on a CPU.
StreamBuilder five_calls() {
  StreamBuilder stream;
  stream.event(7, "cpu-clock").calls_of("handle");
  for (std::uint64_t i = 1; i <= 4; ++i)
    stream.enter({.time_ns = 10 * i * kMs}).leave({.time_ns = 11 * i * kMs});
  stream.enter({.time_ns = 100 * kMs});
  for (std::uint64_t i = 0; i < 5; ++i)
    stream.sample({.time_ns = 101 * kMs + i, .period = kMs});
  stream.sample({.time_ns = 102 * kMs, .tid = 2, .period = kMs});
  stream.leave({.time_ns = 110 * kMs});
  return stream;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_table_has_percentiles_and_shares) {
  const Result r = spans(five_calls());
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.err == "");
  BOOST_TEST(r.out ==
             "     calls      p50      p95      p99      max  on CPU off CPU  function\n"
             "         5  3.01 ms    10 ms    10 ms    10 ms   25.0%   75.0%  handle\n");
}

BOOST_AUTO_TEST_CASE(json_has_nanoseconds) {
  BOOST_TEST(spans(five_calls(), {"--json"}).out ==
             "{\"view\":\"spans\",\n \"lines\":[\n  {\"function\":\"handle\",\"calls\":5,"
             "\"p50_ns\":3014655,\"p95_ns\":10000000,\"p99_ns\":10000000,\"max_ns\":10000000,"
             "\"total_ns\":20000000,\"on_cpu_ns\":5000000,\"off_cpu_ns\":15000000,"
             "\"recursive\":0,\"left\":0,\"lost\":0,\"ended_with_thread\":0,\"open\":0,"
             "\"began_before\":0}\n ]}\n");
}

BOOST_AUTO_TEST_CASE(waits_are_the_time_off_the_cpu) {
  StreamBuilder stream;
  stream.event(7, "offcpu").unit(7, "ns").calls_of("handle");
  stream.enter({.time_ns = 10 * kMs})
      .sample({.time_ns = 15 * kMs, .period = 3 * kMs})
      .leave({.time_ns = 20 * kMs});
  const std::string tsv = spans(stream, {"--tsv"}).out;
  BOOST_TEST(tsv ==
             "calls\tp50_ns\tp95_ns\tp99_ns\tmax_ns\ttotal_ns\ton_cpu_ns\toff_cpu_ns\trecursive\t"
             "left\tlost\tended_with_thread\topen\tbegan_before\tfunction\n"
             "1\t10000000\t10000000\t10000000\t10000000\t10000000\t7000000\t3000000\t0\t0\t0\t0\t0"
             "\t0\thandle\n");
}

BOOST_AUTO_TEST_CASE(calls_without_a_known_end_are_reported) {
  StreamBuilder stream;
  stream.event(7, "cpu-clock").calls_of("handle").calls_of("never", 30);
  stream.enter({.time_ns = 10 * kMs})
      .enter({.time_ns = 20 * kMs})
      .sample({.time_ns = 30 * kMs, .period = kMs});
  const Result r = spans(stream);
  BOOST_TEST(r.out ==
             "     calls      p50      p95      p99      max  on CPU off CPU  function\n"
             "         2        -        -        -        -   10.0%   90.0%  handle\n"
             "         0        -        -        -        -       -       -  never\n");
  BOOST_TEST(r.err ==
             "stacktop: handle: 2 calls, 1 never returned (longjmp, exceptions), 1 still open at "
             "the end\n");
}

BOOST_AUTO_TEST_CASE(other_input_is_refused) {
  BOOST_TEST(spans(StreamBuilder(StreamBuilder().event().sample({}))).err ==
             "stacktop: stdin: the recording has no calls (record them: pe-record --span FUNC)\n");
  BOOST_TEST(stacktop({"--spans"}, "a;b 1\n").status == 1);
  BOOST_TEST(stacktop({"--spans", "--tree"}).err ==
             "stacktop: --tree: cannot be combined with --spans (see --help)\n");
}

BOOST_AUTO_TEST_CASE(percentiles_are_at_most_one_per_cent_too_long) {
  Durations durations;
  BOOST_TEST(durations.percentile_ns(50) == 0);
  for (std::uint64_t i = 1; i <= 100'000; ++i)
    durations.add(i * 37);
  for (const unsigned percent : {1U, 50U, 95U, 99U, 100U}) {
    const std::uint64_t right = 1'000ULL * percent * 37;
    BOOST_TEST(durations.percentile_ns(percent) >= right);
    BOOST_TEST(durations.percentile_ns(percent) <= right + right / 100);
  }
  Durations longest;
  longest.add(~std::uint64_t{0});
  BOOST_TEST(longest.percentile_ns(50) == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_SUITE_END()
