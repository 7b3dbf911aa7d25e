// SPDX-License-Identifier: MIT
#include "painting/statistics/noise.h"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace pe::painting {
namespace {

namespace bm = boost::math;

constexpr double kNormal = 1e6;  // above these degrees Student's distribution is taken as normal

/// Returns the x > 0 whose trigamma() is `y`.  Bisects ln(x), because trigamma() is decreasing.
double inverse_trigamma(double y) {
  double low = -10;
  double high = 20;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (bm::trigamma(std::exp(middle)) > y ? low : high) = middle;
  }
  return std::exp((low + high) / 2);
}

}  // namespace

double CommonSpread::with(double own, double own_degrees) const {
  const double all = degrees + own_degrees;
  return all > 0 ? (degrees * spread + own_degrees * own) / all : spread;
}

CommonSpread common_spread(std::span<const double> own, double degrees) {
  constexpr std::size_t kFewest = 10;
  std::vector<double> logs;
  logs.reserve(own.size());
  for (const double spread : own)
    if (spread > 0)
      logs.push_back(std::log(spread) - bm::digamma(degrees / 2) + std::log(degrees / 2));
  if (logs.size() < kFewest)
    return {};
  const auto count = static_cast<double>(logs.size());
  double mean = 0;
  for (const double value : logs)
    mean += value / count;
  double variance = 0;
  for (const double value : logs)
    variance += (value - mean) * (value - mean) / (count - 1);
  const double excess = variance - bm::trigamma(degrees / 2);
  const double most = count * degrees;  // no common spread can be known by more
  if (excess <= 0)
    return {.spread = std::exp(mean), .degrees = most};
  const double half = inverse_trigamma(excess);
  return {.spread = std::exp(mean + bm::digamma(half) - std::log(half)),
          .degrees = std::min(most, 2 * half)};
}

double t_p_value(double t, double degrees) {
  if (std::isnan(t) || !(degrees > 0))
    return 1;
  const double size = std::min(std::abs(t), 1e6);
  if (degrees > kNormal)
    return std::erfc(size / std::sqrt(2.0));
  return 2 * bm::cdf(bm::complement(bm::students_t(degrees), size));
}

double t_of_p_value(double p, double degrees) {
  const double half = std::clamp(p / 2, 1e-300, 0.5);
  if (degrees > kNormal)
    return bm::quantile(bm::complement(bm::normal(), half));
  return bm::quantile(bm::complement(bm::students_t(std::max(degrees, 0.5)), half));
}

double asked_below(std::vector<double> smallest, double level) {
  std::ranges::sort(smallest);
  const auto asked = [&](std::size_t questions) {
    const double limit = level / static_cast<double>(questions);
    return static_cast<std::size_t>(std::ranges::upper_bound(smallest, limit) - smallest.begin());
  };
  // Finds the smallest K such that at most K questions can have a p-value of `level` / K or less.
  std::size_t low = 1;
  std::size_t high = std::max<std::size_t>(1, smallest.size());
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (asked(middle) <= middle)
      high = middle;
    else
      low = middle + 1;
  }
  return level / static_cast<double>(low);
}

Decision holm(std::vector<double> p_values, double level) {
  std::ranges::sort(p_values);
  Decision decision{.threshold = level};
  const std::size_t all = p_values.size();
  for (; decision.standing < all; ++decision.standing) {
    decision.threshold = level / static_cast<double>(all - decision.standing);
    if (p_values[decision.standing] > decision.threshold)
      return decision;
  }
  decision.threshold = level;
  return decision;
}

namespace {

/// If counts are not samples, a frame is tested only if it has this share of all counts.  A smaller
/// share may come from one burst in one run.
constexpr double kLeastShare = 0.001;
/// A frame contributes to the common spread only if it has this many samples in the mean run.
constexpr double kTellingSamples = 5;

/// Reduces the samples to the number of independent ones that would vary as much: Rao and Scott,
/// Biometrics 48 (1992) 577-585.
Seen worth(Seen seen, double spread) { return {seen.hits / spread, seen.of / spread}; }

/// Makes an interval agree with the test.  Holm's procedure finds slightly more changes than
/// simultaneous intervals do; the interval of such a change ends at 0 (Strassburger and Bretz,
/// Statistics in Medicine 27, 2008, 4914-4927).
Interval agreeing(Interval interval, bool is_beyond, double change) {
  if (!is_beyond)
    return {std::min(interval.low, 0.0), std::max(interval.high, 0.0)};
  return change > 0 ? Interval{std::max(interval.low, 0.0), interval.high}
                    : Interval{interval.low, std::min(interval.high, 0.0)};
}

}  // namespace

NoiseJudge::NoiseJudge(Experiment experiment) : experiment_(std::move(experiment)) {
  const double per_sample = has_samples() ? experiment_.counts_per_sample : 1;
  std::size_t runs = 0;
  const auto look = [&](const std::vector<double>& totals, Seen& side) {
    for (const double total : totals) {
      const bool is_any = total > 0;
      runs += is_any ? 1 : 0;
      looks_.push_back(!is_any         ? 0
                       : is_absolute() ? experiment_.work[looks_.size()]
                                       : total / per_sample);
      side.of += looks_.back();
    }
  };
  look(experiment_.before, before_);
  look(experiment_.after, after_);
  if (before_.of > 0 && after_.of > 0)
    degrees_ = static_cast<double>(runs) - 2;
}

void NoiseJudge::add(std::span<const double> counts) {
  const double per_sample = has_samples() ? experiment_.counts_per_sample : 1;
  Frame frame{.before = before_, .after = after_, .squares = 0};
  const std::size_t first_after = experiment_.before.size();
  for (std::size_t run = 0; run < counts.size(); ++run)
    (run < first_after ? frame.before : frame.after).hits += counts[run] / per_sample;
  if (has_runs()) {
    for (std::size_t run = 0; run < counts.size(); ++run) {
      if (looks_[run] <= 0)
        continue;
      const double rate = (run < first_after ? frame.before : frame.after).rate();
      const double distance = counts[run] / per_sample / looks_[run] - rate;
      frame.squares += looks_[run] * distance * distance;
    }
  }
  numbers_.push_back(frames_.size());
  frames_.push_back(frame);
}

void NoiseJudge::add_same_as(std::size_t index) { numbers_.push_back(numbers_[index]); }

/// Returns the variance of a rate by sampling alone, for a Seen::of of 1.
double NoiseJudge::variance_unit(const Frame& frame) const {
  const double rate = (frame.before.hits + frame.after.hits) / (before_.of + after_.of);
  return is_absolute() ? rate : rate * (1 - rate);
}

double NoiseJudge::smallest_p_value_of(const Frame& frame) const {
  const double hits = frame.before.hits + frame.after.hits;
  if (experiment_.least_growth && hits <= *experiment_.least_growth * after_.of)
    return 1;
  if (has_samples())
    return smallest_p_value(hits, before_.of, after_.of);
  return hits < kLeastShare * (before_.of + after_.of) ? 1 : 0;
}

/// Returns the indices of the frames that are tested.
std::vector<std::size_t> NoiseJudge::questions() const {
  std::vector<double> smallest;
  smallest.reserve(frames_.size());
  for (const Frame& frame : frames_)
    smallest.push_back(smallest_p_value_of(frame));
  const double limit = asked_below(smallest, level());
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < smallest.size(); ++i)
    if (smallest[i] <= limit)
      asked.push_back(i);  // NOLINT(performance-inefficient-vector-operation): few of many
  return asked;
}

/// Returns the mean variance of a run's rate over frames of that rate, sampling noise included.
/// Programs vary in proportion to their work, so hot frames exceed sampling noise by more than
/// rare ones.
double NoiseJudge::usual_variance(const Frame& frame) const {
  const double rate = (frame.before.hits + frame.after.hits) / (before_.of + after_.of);
  const double look = (before_.of + after_.of) / (degrees_ + 2);
  return variance_unit(frame) + wobble_ * rate * rate * look;
}

/// Chooses wobble_ so that the mean variance of the `telling` frames is usual_variance().
void NoiseJudge::fit_wobble(const std::vector<std::size_t>& telling) {
  const auto mean_excess = [&](double wobble) {
    wobble_ = wobble;
    double sum = 0;
    for (const std::size_t i : telling)
      sum += frames_[i].squares / degrees_ / usual_variance(frames_[i]);
    return sum - static_cast<double>(telling.size());
  };
  double low = 0;
  double high = 16;  // enough for runs that have nothing in common
  constexpr int kHalvings = 50;
  for (int i = 0; i < kHalvings && high > 0; ++i) {
    const double middle = (low + high) / 2;
    (mean_excess(middle) > 0 ? low : high) = middle;
  }
  wobble_ = high;
}

/// Returns for each question the variance between runs, divided by that of sampling alone.
std::vector<double> NoiseJudge::spreads_of(const std::vector<std::size_t>& questions) {
  std::vector<double> spreads(questions.size(), 1);
  if (!has_runs())
    return spreads;
  if (has_samples())
    learn_common(questions);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Frame& frame = frames_[questions[i]];
    const double unit = variance_unit(frame);
    const double usual = usual_variance(frame);
    if (unit > 0)
      spreads[i] = common_.with(frame.squares / degrees_ / usual, degrees_) * usual / unit;
    if (has_samples())  // runs do not differ by less than sampling noise
      spreads[i] = std::max(spreads[i], 1.0);
  }
  return spreads;
}

/// Sets wobble_ and common_.  Used only if counts are samples; otherwise each frame has only its
/// own spread.
void NoiseJudge::learn_common(const std::vector<std::size_t>& questions) {
  std::vector<std::size_t> telling;
  for (const std::size_t i : questions) {
    const double hits = frames_[i].before.hits + frames_[i].after.hits;
    if (hits >= kTellingSamples * static_cast<double>(looks_.size()) &&
        variance_unit(frames_[i]) > 0)
      telling.push_back(i);
  }
  fit_wobble(telling);
  std::vector<double> own;
  own.reserve(telling.size());
  for (const std::size_t i : telling)
    own.push_back(frames_[i].squares / degrees_ / usual_variance(frames_[i]));
  common_ = common_spread(own, degrees_);
}

/// Returns the spread of a frame that is not tested.
double NoiseJudge::usual_spread(const Frame& frame) const {
  const double unit = variance_unit(frame);
  const double spread = unit > 0 ? common_.spread * usual_variance(frame) / unit : 1;
  return has_samples() ? std::max(1.0, spread) : spread;
}

/// Standard error of the change.
double NoiseJudge::error_of(const Frame& frame, double spread) const {
  return std::sqrt(spread * variance_unit(frame) * (1 / before_.of + 1 / after_.of));
}

/// With least_growth the test is one-sided: it halves the p-value, because both tests are symmetric
/// and two-sided by doubling.
double NoiseJudge::p_value_of(const Frame& frame, double spread) const {
  const double p_value = two_sided_p_value_of(frame, spread);
  if (!experiment_.least_growth)
    return p_value;
  return frame.after.rate() > frame.before.rate() ? p_value / 2 : 1;
}

double NoiseJudge::two_sided_p_value_of(const Frame& frame, double spread) const {
  double p_value = 0;
  if (has_samples()) {
    const Seen before = worth(frame.before, spread);
    const Seen after = worth(frame.after, spread);
    p_value = is_absolute() ? rate_p_value(before, after) : share_p_value(before, after);
  }
  if (!has_runs())
    return p_value;
  const double error = error_of(frame, spread);
  const double change = frame.after.rate() - frame.before.rate();
  const double t = error > 0 ? change / error : 0;
  return std::max(p_value, t_p_value(t, common_.degrees + degrees_));
}

/// Returns how many standard errors an interval of this level extends to either side.
double NoiseJudge::reach_of(double level) const {
  return t_of_p_value(
      level, has_runs() ? common_.degrees + degrees_ : std::numeric_limits<double>::infinity());
}

Interval NoiseJudge::interval_of(const Frame& frame, double spread, double reach) const {
  if (has_runs()) {
    const double change = frame.after.rate() - frame.before.rate();
    const double half = reach * error_of(frame, spread);
    if (is_absolute())
      return {change - half, change + half};
    return {std::max(-1.0, change - half), std::min(1.0, change + half)};  // shares
  }
  return is_absolute() ? rate_interval(frame.before, frame.after, reach)
                       : share_interval(frame.before, frame.after, reach);
}

std::vector<Change> NoiseJudge::judge() {
  std::vector<Change> changes(numbers_.size());
  if (!(before_.of > 0 && after_.of > 0) || (!has_samples() && !has_runs()))
    return changes;
  const std::vector<std::size_t> asked = questions();
  const std::vector<double> spreads = spreads_of(asked);
  std::vector<double> p_values;
  p_values.reserve(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i)
    p_values.push_back(p_value_of(frames_[asked[i]], spreads[i]));
  const Decision decision = holm(p_values, level());

  const double sides = experiment_.least_growth ? 2 : 1;  // each end of an interval is one
  const double reach =
      reach_of(sides * level() / static_cast<double>(std::max<std::size_t>(1, asked.size())));
  std::vector<Change> of_frames(frames_.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    const bool is_asked = next < asked.size() && asked[next] == i;
    const double spread = is_asked ? spreads[next] : usual_spread(frames_[i]);
    Change& change = of_frames[i];
    change.noise = !is_asked                              ? Noise::kTooRare
                   : p_values[next] <= decision.threshold ? Noise::kBeyond
                                                          : Noise::kWithin;
    change.interval =
        agreeing(interval_of(frames_[i], spread, reach), change.noise == Noise::kBeyond,
                 frames_[i].after.rate() - frames_[i].before.rate());
    next += is_asked ? 1 : 0;
  }
  for (std::size_t i = 0; i < numbers_.size(); ++i)
    changes[i] = of_frames[numbers_[i]];
  return changes;
}

}  // namespace pe::painting
