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

BOOST_AUTO_TEST_CASE(a_thread_may_be_due_by_time_that_the_figure_lacks) {
  CpuCredit credit(kPeriodNs);
  credit.take(kPeriodNs);
  BOOST_TEST(!credit.is_due(kPeriodNs));
  BOOST_TEST(!credit.is_due(kPeriodNs, kPeriodNs / 4));
  BOOST_TEST(credit.is_due(kPeriodNs, kPeriodNs / 2));
  BOOST_TEST(!credit.is_due(4 * kPeriodNs, 4 * kPeriodNs));  // the figure is not that old
}

// Whatever the number of looks that find them running, as on a busy machine.
BOOST_AUTO_TEST_CASE(many_short_threads_have_no_more_than_their_time_and_one_period) {
  constexpr std::uint64_t kThreads = 1000, kPeriods = 5, kLooks = 4;
  std::uint64_t samples = 0;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    CpuCredit credit(kPeriodNs);
    credit.add(kPeriodNs * thread / kThreads);  // their lengths differ
    for (std::uint64_t look = 0; look < kPeriods * kLooks; ++look) {
      credit.add(kPeriodNs / kLooks);
      if (credit.is_due(kPeriodNs)) {
        ++samples;
        credit.take(kPeriodNs);
      }
    }
  }
  BOOST_TEST(samples <= kThreads * (kPeriods + 1) + kThreads / 2);  // their mean time is 5.5
  BOOST_TEST(samples >= kThreads * kPeriods);
}

BOOST_AUTO_TEST_CASE(what_was_missed_the_next_sample_stands_for) {
  constexpr std::uint64_t kHadNs = 100 * kPeriodNs;
  const Taken taken = take(10, kHadNs);
  BOOST_TEST(taken.samples == 10u);
  BOOST_TEST(taken.period_ns <= 10 * kHadNs + kPeriodNs + CpuCredit::kLagNs);
  BOOST_TEST(taken.period_ns >= 10 * kHadNs - 10 * kPeriodNs);
}

BOOST_AUTO_TEST_SUITE_END()
