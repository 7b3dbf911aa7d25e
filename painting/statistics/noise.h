// Finds frames that changed by more than noise from one profile to another.
//
// With one profile a side, noise is sampling noise, the least by which two runs of a program
// differ.  With several profiles a side, the variation between runs is measured and added.
// If no frame changed, the probability that any is reported as changed is below 5 %
// (many_tests.h).
//
// The tests assume independent samples.  Samples of threads that wait for each other are not;
// several runs a side show how much that matters.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "painting/statistics/exact_test.h"
#include "painting/statistics/noise_constants.h"

namespace pe::painting {

// Estimates the spread: how much more runs of a program differ than sampling alone explains.
//
// The spread of one frame comes from two or three runs, which is not reliable, but there are
// hundreds of frames.  Each estimate is pulled towards the common spread, the more strongly
// the more the frames agree (Smyth, Statistical Applications in Genetics and Molecular Biology 3,
// 2004, article 3, where genes have the role of frames).

/// The spread that frames have in common, and the degrees of freedom by which it is known.
struct CommonSpread {
  double spread = 1;
  double degrees = 0;  ///< 0: no common spread is known

  /// Returns the spread of a frame whose own runs have spread `own`, known by `own_degrees`.
  [[nodiscard]] double with(double own, double own_degrees) const;
};

/// Estimates it from the frames' own spreads, each with `degrees` of freedom.  Returns a spread
/// with 0 degrees if fewer than ten own spreads are above 0.
CommonSpread common_spread(std::span<const double> own, double degrees);

/// Probability in Student's distribution of a |t| at least as large; degrees may be infinite.
double t_p_value(double t, double degrees);
/// Returns the t that has this p-value.
double t_of_p_value(double p, double degrees);

// Corrects for many tests of the same samples: decides which results are accepted.  A question is
// one test, and its answer is the result.
//
// Holm's procedure (Scandinavian Journal of Statistics 6, 1979, 65-70) bounds the probability that
// even one answer is wrong, however the questions depend on each other.  Frames depend in every
// way: a caller contains its callees, and where one share grows others must shrink.  Benjamini and
// Hochberg's procedure would find more.  But it promises only that few of many answers are wrong,
// and its proof requires positive dependence.  One of those few must not stop a merge.
//
// Some frames are too rare to differ from noise, whatever happened to them.  They are not tested
// (Tarone, Biometrics 46, 1990, 515-522).  Most frames of a profile are that rare.

/// Returns a limit: a question is asked only if its smallest possible p-value does not exceed it.
/// `smallest`: the smallest possible p-value of each question.  It must not depend on which side
/// the samples are on.  `level`: the acceptable probability of a wrong answer, such as 0.05.
double asked_below(std::vector<double> smallest, double level);

struct Decision {
  /// Only answers with at most this p-value are accepted.
  double threshold = 0;
  std::size_t standing = 0;
};

/// `p_values`: those of all questions that were asked.
Decision holm(std::vector<double> p_values, double level);

/// The level for growth of costs that stops a merge (Experiment::least_growth with work).
/// tests/bench/gate.py measured it: see figures.md there.
inline constexpr double kGrowthLevel = 0.005;

/// The measurements.
struct Experiment {
  std::vector<double> before, after;  ///< the total of each run, in counts
  double counts_per_sample = 1;       ///< 0: counts are not samples, so one run has no known noise
  /// Units of work that each run did, first the runs before, next those after.  Rates are counts
  /// per unit.  Empty: rates are shares of the run.
  std::vector<double> work{};
  /// If set, only growth is tested, and only of rates that may have grown by more than this.  A
  /// rate that is too small in both profiles together is not tested.  One-sided and fewer tests
  /// find growth in fewer samples.  With `work`, the level is
  /// kGrowthLevel.
  std::optional<double> least_growth{};
};

enum class Noise : std::uint8_t {
  kUnknown,
  kTooRare,  ///< too rare to be beyond noise, whatever happened to it
  kWithin,
  kBeyond,
};

struct Change {
  Noise noise = Noise::kUnknown;
  /// The confidence interval of the rate's growth, in shares or counts per unit.  The intervals of
  /// all frames hold together with probability 1 - kNoiseLevel, or 1 - 2 level()
  /// if only growth is tested.  0 lies between the ends exactly if the
  /// change is not beyond noise.
  Interval interval;
};

class NoiseJudge {
 public:
  explicit NoiseJudge(Experiment experiment);

  /// Adds a frame: its counts in each run before, followed by those in each run after.
  void add(std::span<const double> counts);
  /// Adds a frame with the counts of the frame added as number `index`, because it is in the same
  /// samples.  It needs no test of its own.
  void add_same_as(std::size_t index);

  /// Returns the change of every frame, in the order in which they were added.
  [[nodiscard]] std::vector<Change> judge();

 private:
  struct Frame {
    Seen before, after;  ///< all runs together
    double squares;      ///< weighted sum of the squared distances of runs from their side's rate
  };

  [[nodiscard]] bool has_runs() const { return degrees_ > 0; }
  [[nodiscard]] bool is_absolute() const { return !experiment_.work.empty(); }
  [[nodiscard]] double level() const {
    return experiment_.least_growth && is_absolute() ? kGrowthLevel : kNoiseLevel;
  }
  [[nodiscard]] bool has_samples() const { return experiment_.counts_per_sample > 0; }
  [[nodiscard]] double variance_unit(const Frame& frame) const;
  [[nodiscard]] double smallest_p_value_of(const Frame& frame) const;
  [[nodiscard]] std::vector<std::size_t> questions() const;
  [[nodiscard]] double usual_variance(const Frame& frame) const;
  void fit_wobble(const std::vector<std::size_t>& telling);
  void learn_common(const std::vector<std::size_t>& questions);
  [[nodiscard]] double usual_spread(const Frame& frame) const;
  [[nodiscard]] std::vector<double> spreads_of(const std::vector<std::size_t>& questions);
  [[nodiscard]] double error_of(const Frame& frame, double spread) const;
  [[nodiscard]] double p_value_of(const Frame& frame, double spread) const;
  [[nodiscard]] double two_sided_p_value_of(const Frame& frame, double spread) const;
  [[nodiscard]] double reach_of(double level) const;
  [[nodiscard]] Interval interval_of(const Frame& frame, double spread, double reach) const;

  Experiment experiment_;
  Seen before_, after_;        ///< only `of` is set: samples, counts or units of work of the side
  std::vector<double> looks_;  ///< `of` of each run; 0 for an empty one
  double degrees_ = 0;         ///< degrees of freedom between runs
  double wobble_ = 0;          ///< variance of runs beyond sampling noise, in squares of the rate
  CommonSpread common_;        ///< of frames' variances, relative to usual_variance()
  std::vector<Frame> frames_;  ///< without those of add_same_as()
  std::vector<std::size_t> numbers_;
};

}  // namespace pe::painting
