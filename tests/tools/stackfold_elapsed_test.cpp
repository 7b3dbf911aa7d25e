// stackfold of a recording of CPU time and waits: elapsed time over time, and its facts.
// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/stackfold.h"
#include "support/stream_builder.h"

using pe::testing::Result;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(stackfold_elapsed)

namespace {

constexpr std::uint64_t kMs = 1'000'000, kStart = 10'000 * kMs;
constexpr std::uint64_t kWaitId = 7, kCpuId = 8, kSilenceId = 9;
constexpr std::uint64_t kSleep = 3;

struct Recording : StreamBuilder {
  Recording() {
    for (const auto& [id, name] :
         {std::pair{kWaitId, "offcpu"}, {kCpuId, "cpu"}, {kSilenceId, "silence"}})
      event(id, name, PERF_SAMPLE_WEIGHT).unit(id, "ns");
    comm(0, 1, 1, "p").comm(0, 1, 2, "q");
  }
  Recording& add(std::uint64_t id, std::uint64_t end_ms, std::uint64_t ms, std::uint64_t weight,
                 std::uint32_t tid = 1) {
    sample({.time_ns = kStart + end_ms * kMs,
            .pid = tid == 0 ? 0U : 1U,
            .tid = tid,
            .id = id,
            .period = ms * kMs,
            .weight = weight});
    return *this;
  }
  /// The recording took `ms`.
  Recording& whole(std::uint64_t ms) { return add(kSilenceId, ms, ms, 0, 0); }
};

/// p runs for 100 ms, with q for 100 ms, sleeps for 150 ms, and runs for 50 ms.
Recording phases() {
  Recording all;
  all.add(kCpuId, 50, 50, 1).add(kCpuId, 100, 50, 1);
  for (const std::uint64_t ms : {150, 200})
    all.add(kCpuId, ms, 50, 2).add(kCpuId, ms, 50, 2, 2);
  all.add(kWaitId, 350, 150, kSleep).add(kSilenceId, 350, 150, kSleep);
  return all.add(kCpuId, 400, 50, 1).whole(400);
}

Result fold(StreamBuilder stream, const std::vector<std::string>& args) {
  return pe::testing::stackfold(args, stream.round().text());
}

/// Returns the value of a fact.
std::string fact(const std::string& text, const std::string& key) {
  const std::string begin = "# " + key + ": ";
  const auto at = text.find(begin);
  return at == text.npos ? "none"
                         : text.substr(at + begin.size(), text.find('\n', at) - at - begin.size());
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_step_has_the_time_that_passed_in_it) {
  const auto r = fold(phases(), {"--weight", "elapsed", "--every", "100ms"});
  BOOST_TEST(r.out ==
             "@0.000;p 100000\n@0.100;p 50000\n@0.100;q 50000\n@0.200;p;[sleep] 100000\n"
             "@0.300;p 50000\n@0.300;p;[sleep] 50000\n");
  BOOST_TEST(r.err == "");
}

// The recorder sums up waits that took turns, and each sum is drawn up to its end.
BOOST_AUTO_TEST_CASE(a_step_has_no_more_waits_than_it_has_time) {
  Recording all;
  all.add(kCpuId, 50, 50, 1).add(kSilenceId, 399, 149, kSleep).add(kSilenceId, 400, 201, kSleep, 2);
  const auto r = fold(all.whole(400), {"--weight", "elapsed", "--every", "100ms"});
  std::map<std::string, double> steps;
  double sum = 0;
  for (std::size_t at = 0, end = 0; (end = r.out.find('\n', at)) != r.out.npos; at = end + 1) {
    const double us = std::stod(r.out.substr(r.out.rfind(' ', end) + 1));
    steps[r.out.substr(at, r.out.find(';', at) - at)] += us;
    sum += us;
  }
  BOOST_TEST(steps.size() == 4U);
  for (const auto& [step, us] : steps)
    BOOST_TEST(std::abs(us - 100'000) < 1, step);
  BOOST_TEST(std::abs(sum - 400'000) < 0.001);
}

BOOST_AUTO_TEST_CASE(the_steps_add_up_to_the_time_of_the_recording) {
  Recording all;
  all.add(kCpuId, 33, 10, 3).add(kCpuId, 71, 10, 3).add(kSilenceId, 260, 111, kSleep);
  const auto r = fold(all.whole(300), {"--weight", "elapsed", "--every", "7ms"});
  double sum = 0;
  for (std::size_t at = 0, end = 0; (end = r.out.find('\n', at)) != r.out.npos; at = end + 1)
    sum += std::stod(r.out.substr(r.out.rfind(' ', end) + 1));
  BOOST_TEST(std::abs(sum - 300'000) < 0.001);
}

BOOST_AUTO_TEST_CASE(time_without_a_sample_is_in_the_last_step) {
  Recording all;
  all.add(kSilenceId, 90, 90, kSleep).whole(120);
  BOOST_TEST(fold(all, {"--weight", "elapsed", "--every", "100ms"}).out ==
             "@0.000;p;[sleep] 90000\n@0.100;[ran, but was not sampled] 30000\n");
}

BOOST_AUTO_TEST_CASE(a_range_has_its_own_time_on_the_clock) {
  const auto in = [](const Recording& all, const std::string& range) {
    return fold(all, {"--weight", "elapsed", "--time", range}).out;
  };
  BOOST_TEST(in(phases(), "10.100,10.300") == "p 50000\np;[sleep] 100000\nq 50000\n");
  BOOST_TEST(in(phases(), "10.220,10.250") == "p;[sleep] 30000\n");
  BOOST_TEST(in(phases(), "10.300,10.375") == "p 25000\np;[sleep] 50000\n");
  BOOST_TEST(in(phases(), "10.350,20") == "p 50000\n");  // the recording ends before the range
  BOOST_TEST(in(phases(), ",-200ms") == "p 150000\nq 50000\n");
  BOOST_TEST(in(phases(), "11,12") == "");
}

// As a part of the segments that are kept of a recording, which does not know the whole time.
BOOST_AUTO_TEST_CASE(a_range_needs_no_end_of_the_recording) {
  Recording all;
  all.add(kCpuId, 50, 50, 1).add(kSilenceId, 350, 300, kSleep).add(kCpuId, 400, 50, 1);
  const auto in = [&](const std::string& range) {
    return fold(all, {"--weight", "elapsed", "--time", range}).out;
  };
  BOOST_TEST(in("10.020,10.360") == "p 40000\np;[sleep] 300000\n");
  BOOST_TEST(in("10.100,10.200") == "p;[sleep] 100000\n");
  const auto whole = fold(all, {"--weight", "elapsed"});
  BOOST_TEST(whole.status == 1);
  BOOST_TEST(whole.err.find("choose a part of it by --time") != whole.err.npos, whole.err);
}

BOOST_AUTO_TEST_CASE(steps_of_a_range_add_up_to_it) {
  const auto r =
      fold(phases(), {"--weight", "elapsed", "--every", "100ms", "--time", "10.150,10.375"});
  double sum = 0;
  for (std::size_t at = 0, end = 0; (end = r.out.find('\n', at)) != r.out.npos; at = end + 1)
    sum += std::stod(r.out.substr(r.out.rfind(' ', end) + 1));
  BOOST_TEST(std::abs(sum - 225'000) < 0.001, r.out);
}

BOOST_AUTO_TEST_CASE(facts_have_the_times_of_threads_and_the_parallelism) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--annotate"}, {"--annotate", "--weight", "elapsed"}}) {
    const auto r = fold(phases(), args);
    BOOST_TEST(fact(r.out, "event") == "cpu,waits");
    BOOST_TEST(fact(r.out, "elapsed") == "0.400 s");
    BOOST_TEST(fact(r.out, "on-cpu") == "0.350 s");
    BOOST_TEST(fact(r.out, "sleep") == "0.150 s");
    BOOST_TEST(fact(r.out, "lock") == "none");
    BOOST_TEST(fact(r.out, "parallelism") == "1.40 threads while any ran, 0.88 over all time");
  }
}

BOOST_AUTO_TEST_CASE(the_time_of_the_recording_is_no_stack) {
  BOOST_TEST(fold(phases(), {"--event", "silence"}).out == "p;[sleep] 150000\n");
  BOOST_TEST(fold(phases(), {"--all-events"}).out ==
             "cpu;p 250000\ncpu;q 100000\noffcpu;p;[sleep] 150000\nsilence;p;[sleep] 150000\n");
}

// Samples that are missing where threads switch very often do not make a thread faster.
BOOST_AUTO_TEST_CASE(cpu_time_is_what_is_left_of_the_clock) {
  Recording all;
  all.add(kCpuId, 10, 10, 1).add(kSilenceId, 400, 100, kSleep).whole(400);
  BOOST_TEST(fact(fold(all, {"--annotate"}).out, "on-cpu") == "0.300 s");
}

BOOST_AUTO_TEST_CASE(without_the_whole_time_samples_are_the_cpu_time) {
  Recording all;
  all.add(kCpuId, 10, 10, 1).add(kWaitId, 400, 100, 2);
  const auto r = fold(all, {"--annotate"});
  BOOST_TEST(fact(r.out, "on-cpu") == "0.010 s");
  BOOST_TEST(fact(r.out, "lock") == "0.100 s");
  BOOST_TEST(fact(r.out, "elapsed") == "none");
  BOOST_TEST(fact(r.out, "parallelism") == "none");
}

BOOST_AUTO_TEST_CASE(one_of_its_events_has_its_own_facts) {
  BOOST_TEST(fact(fold(phases(), {"--annotate", "--event", "offcpu"}).out, "event") == "offcpu");
  BOOST_TEST(fact(fold(phases(), {"--annotate", "--event", "offcpu"}).out, "on-cpu") == "none");
}

BOOST_AUTO_TEST_CASE(damaged_times_add_up_to_the_whole) {
  Recording all;
  all.add(kCpuId, 33, 1'000'000'000, 1).add(kSilenceId, 260, 1'000'000'000, kSleep);
  const auto r = fold(all.whole(300), {"--weight", "elapsed", "--every", "100ms"});
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out.find("[ran, but was not sampled] 300000\n") != r.out.npos);
}

// Where marks of kinds of code and of waits meet, a frame has one.
BOOST_AUTO_TEST_CASE(frames_of_waits_have_one_mark) {
  const auto user = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
  Recording all;
  all.symbol({.id = 1, .flags = pe::stream::kSymbolLibrary, .name = "poll", .module = "/c"})
      .location(1, 0x10, {1});
  all.sample({.time_ns = kStart + kMs,
              .chain = {user, 0x10},
              .id = kWaitId,
              .period = kMs,
              .weight = kSleep});
  const auto r = fold(all, {"--annotate", "--mark-waits"});
  BOOST_TEST(r.out.ends_with("\np;poll_[o];[sleep]_[o] 1000\n"));
}

BOOST_AUTO_TEST_CASE(exports_call_samples_of_cpu_time_samples) {
  const auto profile = fold(phases(), {"--to", "pprof"});
  const auto events = [&](const std::string& name) {
    return pe::testing::stackfold({"--event", name}, profile.out).out;
  };
  BOOST_TEST(events("cpu-samples") == "p;[unknown] 5\nq;[unknown] 2\n");
  BOOST_TEST(events("offcpu-contentions") == "p;[sleep] 1\n");
  BOOST_TEST(pe::testing::stackfold({"--event", "silence"}, profile.out).status == 1);
}

BOOST_AUTO_TEST_CASE(the_time_of_slow_calls_is_divided) {
  constexpr std::uint64_t kLock = 2;
  Recording all;
  all.calls_of("handle").enter({.time_ns = kStart + 100 * kMs});
  all.add(kCpuId, 150, 40, 1).add(kWaitId, 250, 80, kSleep).add(kWaitId, 300, 30, kLock);
  all.add(kWaitId, 390, 200, kSleep, 2);  // of another thread
  all.leave({.time_ns = kStart + 400 * kMs});
  all.enter({.time_ns = kStart + 500 * kMs}).leave({.time_ns = kStart + 510 * kMs});
  all.whole(600);
  const Result r = fold(all, {"--annotate", "--span", "handle", "--longer", "50ms"});
  BOOST_TEST(r.err.starts_with(
                 "stackfold: stdin: handle: 1 of 2 calls took longer than 50 ms (0.300 s: CPU "
                 "0.190 s, lock 0.030 s, sleep 0.080 s)"),
             r.err);
  BOOST_TEST(fact(r.out, "on-cpu") == "0.190 s");
  BOOST_TEST(fact(r.out, "elapsed") == "none");
  // The first sample in a call stands for time before it, too; that after the last is not counted.
  Recording early;
  early.calls_of("handle").enter({.time_ns = kStart + 100 * kMs});
  early.add(kCpuId, 110, 40, 1).add(kCpuId, 150, 40, 1).add(kWaitId, 120, 30, kSleep);
  early.leave({.time_ns = kStart + 180 * kMs});
  const Result counted = fold(early, {"--event", "cpu", "--span", "handle"});
  BOOST_TEST(counted.out.find(" 80000\n") != std::string::npos, counted.out);
  BOOST_TEST(counted.err.find("outside") == std::string::npos, counted.err);
  BOOST_TEST(fold(early, {"--event", "offcpu", "--span", "handle"})
                 .err.ends_with("left out: 1 sample outside calls\n"));  // it began before: damage
  // Waits alone do not tell how long the call ran.
  const Result waits = fold(all, {"--event", "offcpu", "--longer", "50ms"});
  BOOST_TEST(
      waits.err.starts_with("stackfold: stdin: handle: 1 of 2 calls took longer than 50 ms;"),
      waits.err);
}

BOOST_AUTO_TEST_SUITE_END()
