// SPDX-License-Identifier: MIT
#include "recording/ptrace/cpu_credit.h"

#include <boost/test/unit_test.hpp>

using pe::recording::CpuCredit;

BOOST_AUTO_TEST_SUITE(cpu_credit)

namespace {

constexpr std::uint64_t kPeriodNs = 10'000'000;

struct Taken {
  std::uint64_t samples = 0, period_ns = 0;
};

/// What is taken of a thread that is found running at `looks` looks, and had `cpu_ns` each time.
Taken take(std::uint64_t looks, std::uint64_t cpu_ns) {
  CpuCredit credit(kPeriodNs);
  Taken taken;
  for (std::uint64_t i = 0; i < looks; ++i) {
    credit.add(cpu_ns);
    if (credit.is_due(kPeriodNs)) {
      ++taken.samples;
      taken.period_ns += credit.take(kPeriodNs);
    }
  }
  return taken;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_thread_that_has_all_of_the_time_is_sampled_at_each_look) {
  const Taken taken = take(1000, kPeriodNs);
  BOOST_TEST(taken.samples == 1000u);
  BOOST_TEST(taken.period_ns == 1000 * kPeriodNs);
}

BOOST_AUTO_TEST_CASE(a_thread_that_waits_for_others_has_as_many_as_it_had_time) {
  const Taken taken = take(1000, kPeriodNs / 4);
  BOOST_TEST(taken.samples >= 250u);
  BOOST_TEST(taken.samples <= 252u);  // and what it was given at first
  BOOST_TEST(taken.period_ns == taken.samples * kPeriodNs);
}

BOOST_AUTO_TEST_CASE(a_thread_that_has_just_begun_is_due) {
  BOOST_TEST(CpuCredit(kPeriodNs).is_due(kPeriodNs));
}

BOOST_AUTO_TEST_CASE(what_was_missed_the_next_sample_stands_for) {
  constexpr std::uint64_t kHadNs = 100 * kPeriodNs;
  const Taken taken = take(10, kHadNs);
  BOOST_TEST(taken.samples == 10u);
  BOOST_TEST(taken.period_ns <= 10 * kHadNs + kPeriodNs + CpuCredit::kLagNs);
  BOOST_TEST(taken.period_ns >= 10 * kHadNs - 10 * kPeriodNs);
}

BOOST_AUTO_TEST_SUITE_END()
