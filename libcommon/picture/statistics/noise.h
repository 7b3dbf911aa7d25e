// Which of many frames changed by more than noise from one profile to another.
//
// One profile a side: the noise is that of drawing samples, and two runs of the same program
// differ by at least that.  Several profiles a side: what runs differ by is measured, and is added.
// The probability that even one of all frames is said to have changed though none did is below 5 %
// (many_tests.h).
//
// Samples are taken as independent.  Those of threads that wait for each other are not; several
// runs a side show by how much.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "picture/statistics/exact_test.h"
#include "picture/statistics/spread.h"

namespace pe::picture {

/// What is promised is 5 %.  The tests between runs are approximations, and came to 5.1 % of 1,000
/// comparisons of nothing with nothing when they aimed at 5 %.
inline constexpr double kLevel = 0.04;

/// What was measured.
struct Experiment {
  std::vector<double> before, after;  ///< the total of each run, in counts
  double counts_per_sample = 1;       ///< 0: counts are not samples, so one run tells no noise
  /// The units of work that each run did, those before and then those after: rates are counts a
  /// unit.  Empty: rates are shares of the run.
  std::vector<double> work{};
  /// Asked is only which rates grew by more than this.  A rate that cannot have grown so much, as
  /// rare as it is in both profiles together, is no question, and tests have one side: both find
  /// growth in fewer samples.
  std::optional<double> least_growth{};
};

enum class Noise : std::uint8_t {
  kUnknown,
  kTooRare,  ///< seen too seldom to tell, whatever happened to it
  kWithin,
  kBeyond,
};

struct Change {
  Noise noise = Noise::kUnknown;
  /// Of what the rate grew by: shares, or counts a unit.  The intervals of all frames hold together
  /// with probability 1 - kLevel.  0 lies between the ends just if the change is not beyond noise.
  Interval interval;
};

class NoiseJudge {
 public:
  explicit NoiseJudge(Experiment experiment);

  /// A frame: its counts in each run before, then in each run after.
  void add(std::span<const double> counts);
  /// A frame whose counts are those of the frame added as number `index`, because it is in the same
  /// samples: no question of its own.
  void add_same_as(std::size_t index);

  /// Of every frame, in the order in which they came.
  [[nodiscard]] std::vector<Change> judge();

 private:
  struct Frame {
    Seen before, after;  ///< all runs together
    double squares;      ///< weighted, of the distances of runs from their side's rate
  };

  [[nodiscard]] bool has_runs() const { return degrees_ > 0; }
  [[nodiscard]] bool is_absolute() const { return !experiment_.work.empty(); }
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
  Seen before_, after_;        ///< `of` alone: samples (or counts) or units of work to look in
  std::vector<double> looks_;  ///< the same of each run
  double degrees_ = 0;         ///< of freedom, between runs
  double wobble_ = 0;          ///< variance of a run's rate beyond drawing, in squares of the rate
  CommonSpread common_;        ///< of frames' spreads, in what rate and wobble make usual
  std::vector<Frame> frames_;  ///< each question once
  std::vector<std::size_t> numbers_;
};

}  // namespace pe::picture
