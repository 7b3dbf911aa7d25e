// Measures on thousands of invented profiles whether the comparison keeps its promises.
// SPDX-License-Identifier: MIT
#include "painting/statistics/noise.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstddef>
#include <optional>
#include <random>
#include <utility>
#include <vector>

using namespace pe::painting;

BOOST_AUTO_TEST_SUITE(noise)

namespace {

using Random = std::mt19937_64;

/// Shares of functions as in real profiles: a few hot functions and a long tail.
std::vector<double> heavy_tail(std::size_t functions) {
  std::vector<double> shares;
  double sum = 0;
  for (std::size_t i = 0; i < functions; ++i)
    sum += shares.emplace_back(std::pow(static_cast<double>(i) + 1, -1.2));
  for (double& share : shares)
    share /= sum;
  return shares;
}

/// Draws samples with these shares.
std::vector<double> profile(const std::vector<double>& shares, int samples, Random& random) {
  std::discrete_distribution<std::size_t> draw(shares.begin(), shares.end());
  std::vector<double> counts(shares.size());
  for (int i = 0; i < samples; ++i)
    ++counts[draw(random)];
  return counts;
}

double sum_of(const std::vector<double>& counts) {
  double sum = 0;
  for (const double count : counts)
    sum += count;
  return sum;
}

std::vector<Change> judged(const std::vector<std::vector<double>>& before,
                           const std::vector<std::vector<double>>& after,
                           double counts_per_sample = 1, std::vector<double> work = {},
                           std::optional<double> least_growth = {}) {
  Experiment experiment{.before = {},
                        .after = {},
                        .counts_per_sample = counts_per_sample,
                        .work = std::move(work),
                        .least_growth = least_growth};
  for (const auto& run : before)
    experiment.before.push_back(sum_of(run));
  for (const auto& run : after)
    experiment.after.push_back(sum_of(run));
  NoiseJudge judge(experiment);
  for (std::size_t f = 0; f < before[0].size(); ++f) {
    std::vector<double> counts;
    for (const auto& run : before)
      counts.push_back(run[f]);
    for (const auto& run : after)
      counts.push_back(run[f]);
    judge.add(counts);
  }
  return judge.judge();
}

bool is_any_beyond(const std::vector<Change>& changes) {
  for (const Change& change : changes)
    if (change.noise == Noise::kBeyond)
      return true;
  return false;
}

/// Compares profiles without a real change; returns the part of `comparisons` that found one.
template <typename Compare>
double false_alarms(int comparisons, Compare compare) {
  Random random(42);  // NOLINT: the same profiles every time
  int alarms = 0;
  for (int i = 0; i < comparisons; ++i)
    alarms += is_any_beyond(compare(random)) ? 1 : 0;
  return static_cast<double>(alarms) / comparisons;
}

/// A run whose shares vary by more than the drawing of samples explains.
std::vector<double> wobbling(const std::vector<double>& shares, double wobble, int samples,
                             Random& random) {
  std::normal_distribution<double> normal;
  std::vector<double> now;
  for (const double share : shares)
    now.push_back(share * std::exp(wobble * normal(random)));
  return profile(now, samples, random);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_same_program_twice_seldom_raises_an_alarm) {
  for (const std::size_t functions : {5U, 200U}) {
    const auto shares = heavy_tail(functions);
    for (const int samples_after : {1000, 300}) {
      const double alarms = false_alarms(2000, [&](Random& random) {
        return judged({profile(shares, 1000, random)}, {profile(shares, samples_after, random)});
      });
      BOOST_TEST_MESSAGE(functions << " functions, " << samples_after << ": " << alarms);
      BOOST_TEST(alarms < 0.05);
    }
  }
}

BOOST_AUTO_TEST_CASE(equal_counts_seldom_raise_an_alarm_when_counts_are_compared) {
  const auto shares = heavy_tail(100);
  const double alarms = false_alarms(2000, [&](Random& random) {
    std::poisson_distribution<int> length(1000);
    const auto before = profile(shares, length(random), random);
    return judged({before}, {profile(shares, length(random), random)}, 1, {1, 1});
  });
  BOOST_TEST(alarms < 0.05);
}

BOOST_AUTO_TEST_CASE(a_function_that_grew_by_a_fifth_is_found) {
  const std::vector<double> before = {0.4, 0.3, 0.2, 0.1};
  const std::vector<double> after = {0.48, 0.3, 0.2, 0.1};
  Random random(1);  // NOLINT: the same profiles every time
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    const auto changes = judged({profile(before, 5000, random)}, {profile(after, 5000, random)});
    found += changes[0].noise == Noise::kBeyond && changes[0].interval.low > 0 ? 1 : 0;
  }
  BOOST_TEST(found > 190);
}

BOOST_AUTO_TEST_CASE(intervals_hold_the_truth_and_agree_with_the_answer) {
  const std::vector<double> before = {0.4, 0.3, 0.299, 0.001};
  const std::vector<double> after = {0.5, 0.3, 0.195, 0.005};
  Random random(3);  // NOLINT: the same profiles every time
  int all_hold = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto changes = judged({profile(before, 2000, random)}, {profile(after, 1000, random)});
    bool holds = true;
    for (std::size_t f = 0; f < before.size(); ++f) {
      const Interval interval = changes[f].interval;
      const double truth = after[f] - before[f];
      holds = holds && interval.low <= truth && truth <= interval.high;
      const bool is_around_0 = interval.low <= 0 && interval.high >= 0;
      const bool is_beside_0 = interval.low >= 0 || interval.high <= 0;
      BOOST_TEST((changes[f].noise == Noise::kBeyond ? is_beside_0 : is_around_0));
    }
    all_hold += holds ? 1 : 0;
  }
  BOOST_TEST(all_hold >= 950);
}

BOOST_AUTO_TEST_CASE(runs_that_differ_by_more_than_drawing_seldom_raise_an_alarm) {
  const auto shares = heavy_tail(60);
  const auto run = [&](Random& random) { return wobbling(shares, 0.2, 3000, random); };
  const double single =
      false_alarms(300, [&](Random& random) { return judged({run(random)}, {run(random)}); });
  BOOST_TEST(single > 0.2);  // one profile on each side cannot show this variation
  for (const double counts_per_sample : {1.0, 0.0}) {
    for (const int runs : {2, 4}) {
      const double several = false_alarms(1000, [&](Random& random) {
        std::vector<std::vector<double>> before;
        std::vector<std::vector<double>> after;
        for (int i = 0; i < runs; ++i) {
          before.push_back(run(random));
          after.push_back(run(random));
        }
        return judged(before, after, counts_per_sample);
      });
      BOOST_TEST_MESSAGE(runs << " runs, " << counts_per_sample << ": " << several);
      BOOST_TEST(several < 0.05);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_change_larger_than_what_runs_differ_by_is_found) {
  auto shares = heavy_tail(60);
  auto slower = shares;
  slower[2] *= 2;
  Random random(5);  // NOLINT: the same profiles every time
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<std::vector<double>> before;
    std::vector<std::vector<double>> after;
    for (int k = 0; k < 5; ++k) {
      before.push_back(wobbling(shares, 0.1, 3000, random));
      after.push_back(wobbling(slower, 0.1, 3000, random));
    }
    found += judged(before, after)[2].noise == Noise::kBeyond ? 1 : 0;
  }
  BOOST_TEST(found > 90);
}

BOOST_AUTO_TEST_CASE(weights_that_are_not_samples_tell_nothing_of_one_run) {
  const auto changes = judged({{1e9, 1e3}}, {{2e9, 5e8}}, 0);
  BOOST_TEST((changes[0].noise == Noise::kUnknown));
  BOOST_TEST((changes[1].noise == Noise::kUnknown));
}

BOOST_AUTO_TEST_CASE(a_sample_that_counts_a_thousand_is_one_sample) {
  const auto as_samples = judged({{60, 40}}, {{70, 30}});
  const auto as_periods = judged({{60'000, 40'000}}, {{70'000, 30'000}}, 1000);
  BOOST_TEST((as_samples[0].noise == Noise::kWithin));
  BOOST_TEST((as_periods[0].noise == Noise::kWithin));
  BOOST_TEST(as_samples[0].interval.low == as_periods[0].interval.low);
  BOOST_TEST((judged({{60'000, 40'000}}, {{70'000, 30'000}})[0].noise == Noise::kBeyond));
}

BOOST_AUTO_TEST_CASE(what_was_seen_three_times_is_too_rare_to_tell) {
  const auto changes = judged({{1000, 0}}, {{1000, 3}});
  BOOST_TEST((changes[1].noise == Noise::kTooRare));
  BOOST_TEST(changes[1].interval.low < 0);
}

BOOST_AUTO_TEST_CASE(frames_in_the_same_samples_are_one_question) {
  NoiseJudge once({.before = {100}, .after = {100}});
  NoiseJudge often({.before = {100}, .after = {100}});
  const double counts[] = {30, 52};
  once.add(counts);
  often.add(counts);
  for (int i = 0; i < 1000; ++i)
    often.add_same_as(0);
  BOOST_TEST((once.judge()[0].noise == Noise::kBeyond));
  BOOST_TEST((often.judge()[1000].noise == Noise::kBeyond));
}

BOOST_AUTO_TEST_CASE(empty_profiles_tell_nothing) {
  NoiseJudge judge({.before = {0}, .after = {100}});
  const double counts[] = {0, 100};
  judge.add(counts);
  BOOST_TEST((judge.judge()[0].noise == Noise::kUnknown));
  NoiseJudge none({.before = {5}, .after = {5}});
  BOOST_TEST(none.judge().empty());
}

// A program with fifty functions was sampled at 99 Hz for four seconds before and after.  One
// function grew by ten points, from 59.4 % to 69.7 %.
BOOST_AUTO_TEST_CASE(growth_by_ten_points_is_found_in_four_hundred_samples) {
  std::vector<double> before(50, 1);
  std::vector<double> after(50, 1);
  before[0] = 235;
  after[0] = 276;
  before[1] = 396 - 235 - 48;
  after[1] = 396 - 276 - 48;
  BOOST_CHECK(judged({before}, {after}, 1, {}, 0.05)[0].noise == Noise::kBeyond);
  // this function shrank
  BOOST_CHECK(judged({before}, {after}, 1, {}, 0.05)[1].noise != Noise::kBeyond);
  BOOST_CHECK(judged({after}, {before}, 1, {}, 0.05)[0].noise != Noise::kBeyond);
}

BOOST_AUTO_TEST_CASE(growth_of_nothing_seldom_raises_an_alarm) {
  for (const std::size_t functions : {5U, 200U}) {
    const auto shares = heavy_tail(functions);
    for (const double limit : {0.0, 0.01, 0.05}) {
      const double alarms = false_alarms(2000, [&](Random& random) {
        return judged({profile(shares, 400, random)}, {profile(shares, 400, random)}, 1, {}, limit);
      });
      BOOST_TEST(alarms < 0.05);
    }
  }
}

// The program does twice the work in the same time.  A function with twice the samples costs the
// same for each unit of work, whatever its share.
BOOST_AUTO_TEST_CASE(cost_of_a_unit_of_work_is_found) {
  const std::vector<double> before{600, 200, 200};
  const std::vector<double> after{200, 400, 400};
  const auto changes = judged({before}, {after}, 1, {100, 200});
  BOOST_CHECK(changes[0].noise == Noise::kBeyond);
  BOOST_TEST(changes[0].interval.low <= -5);
  BOOST_TEST(changes[0].interval.high >= -5);
  BOOST_CHECK(changes[1].noise == Noise::kWithin);
}

BOOST_AUTO_TEST_CASE(runs_of_different_work_with_the_same_cost_seldom_raise_an_alarm) {
  const auto shares = heavy_tail(50);
  const std::vector<double> work{10, 20, 15, 30, 12, 25};
  const double alarms = false_alarms(1000, [&](Random& random) {
    std::vector<std::vector<double>> runs;
    for (const double units : work) {
      std::poisson_distribution<int> samples(units * 40);
      runs.push_back(profile(shares, samples(random), random));
    }
    return judged({runs[0], runs[1], runs[2]}, {runs[3], runs[4], runs[5]}, 1, work);
  });
  BOOST_TEST(alarms < 0.055);
}

BOOST_AUTO_TEST_SUITE_END()
