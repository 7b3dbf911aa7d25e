// SPDX-License-Identifier: MIT
#include "recording/signal/signal_engine.h"

#include <boost/test/unit_test.hpp>

#include "recording/request.h"
#include "recording/target_activity.h"

using pe::recording::fix_of_fewer_samples;
using pe::recording::how_to_sample_more;
using pe::recording::why_fewer_samples;

BOOST_AUTO_TEST_SUITE(signal_engine)

BOOST_AUTO_TEST_CASE(the_kernels_tick_is_a_reason_above_it_and_among_other_threads) {
  BOOST_TEST(why_fewer_samples(250, 251, 250) ==
             "this kernel checks CPU-time timers 250 times per second");
  BOOST_TEST(why_fewer_samples(60, 99, 250) ==
             "this kernel checks CPU-time timers 250 times per second, and only that of the thread "
             "that is running");
  for (const std::uint64_t hz : {99U, 250U})
    BOOST_TEST(why_fewer_samples(0.9 * static_cast<double>(hz), hz, 250) ==
               "signals arrived late, so some samples represent several periods");
}

BOOST_AUTO_TEST_CASE(the_advice_is_a_rate_that_the_kernel_has) {
  BOOST_TEST(fix_of_fewer_samples(248, 997, 250) == "use -F 250, or --engine perf or ptrace");
  // At that rate, the others would still have the CPU at many ticks.
  BOOST_TEST(fix_of_fewer_samples(60, 997, 250) == "use --engine perf or ptrace");
  BOOST_TEST(fix_of_fewer_samples(200, 250, 250) == "use --engine perf or ptrace");
}

BOOST_AUTO_TEST_CASE(a_rate_above_the_engines_is_no_advice) {
  using pe::recording::Engine;
  const auto advice = [](Engine engine, std::uint64_t hz) {
    pe::recording::Request request;
    request.engine = engine;
    request.frequency_hz = hz;
    return how_to_sample_more(request, 250);
  };
  BOOST_TEST(advice(Engine::kSignal, 99) == "raise --freq");
  BOOST_TEST(advice(Engine::kSignal, 250) == "record longer");
  BOOST_TEST(advice(Engine::kPtrace, 997) == "raise --freq");
  BOOST_TEST(advice(Engine::kPtrace, pe::recording::kMostHz) == "record longer");
  BOOST_TEST(advice(Engine::kPerf, 99'999) == "raise --freq");
}

BOOST_AUTO_TEST_SUITE_END()
