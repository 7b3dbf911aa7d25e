// SPDX-License-Identifier: MIT
#include "painting/statistics/exact_test.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "painting/statistics/noise_constants.h"

namespace pe::painting {
namespace {

/// Returns the logarithm of the binomial coefficient; `n` and `k` may have fractions.
double log_choose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

double normal_tail(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }

/// The distribution of the hits on one side.  The observed hits are not below its mean.
struct Tail {
  double hits;      ///< observed on this side
  double all;       ///< the most that this side can have
  double mean;      ///< of hits
  double variance;  ///< of hits
};

/// Sums the probabilities of `tail.hits` and more.  `log_first`: the logarithm of the first.
/// `ratio(x)`: the probability of x + 1 divided by that of x.
template <typename Ratio>
double sum_tail(const Tail& tail, double log_first, Ratio ratio) {
  if (tail.variance > kLargeVariance)
    return normal_tail((tail.hits - tail.mean - 0.5) / std::sqrt(tail.variance));
  double sum = 1;
  double term = 1;
  const double steps = std::max(0.0, std::min(std::ceil(tail.all - tail.hits), 1e9));
  const auto last = static_cast<std::uint64_t>(steps);  // `term` becomes negligible much earlier
  for (std::uint64_t i = 0; i < last; ++i) {
    term *= std::max(0.0, ratio(tail.hits + static_cast<double>(i)));
    sum += term;
    if (term < sum * kNegligibleTerm)
      break;
  }
  return std::exp(log_first) * sum;
}

double doubled(double tail) { return std::min(1.0, 2 * tail); }

/// Confidence limits of one rate.
struct Limits {
  double low, high;
};

Limits wilson(Seen seen, double z) {
  const double p = seen.rate();
  const double square = z * z;
  const double middle = (p + square / (2 * seen.of)) / (1 + square / seen.of);
  const double half = z / (1 + square / seen.of) *
                      std::sqrt(p * (1 - p) / seen.of + square / (4 * seen.of * seen.of));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

Limits poisson_score(Seen seen, double z) {
  const double square = z * z;
  const double middle = seen.hits + square / 2;
  const double half = z * std::sqrt(seen.hits + square / 4);
  return {std::max(0.0, middle - half) / seen.of, (middle + half) / seen.of};
}

Interval put_together(Seen before, Seen after, Limits b, Limits a) {
  const double change = after.rate() - before.rate();
  return {change - std::hypot(after.rate() - a.low, b.high - before.rate()),
          change + std::hypot(a.high - after.rate(), before.rate() - b.low)};
}

}  // namespace

double share_p_value(Seen before, Seen after) {
  if (after.rate() < before.rate())
    std::swap(before, after);
  const double hits = before.hits + after.hits;
  const double all = before.of + after.of;
  if (!(hits > 0) || !(before.of > 0) || !(after.of > 0) || !(hits < all))
    return 1;
  const double share = hits / all;
  const Tail tail{.hits = after.hits,
                  .all = std::min(hits, after.of),
                  .mean = after.of * share,
                  .variance = after.of * share * (1 - share) * before.of / std::max(1.0, all - 1)};
  const double log_first =
      log_choose(after.of, after.hits) + log_choose(before.of, before.hits) - log_choose(all, hits);
  return doubled(sum_tail(tail, log_first, [&](double x) {
    return (after.of - x) * (hits - x) / ((x + 1) * (before.of - hits + x + 1));
  }));
}

double rate_p_value(Seen before, Seen after) {
  if (after.rate() < before.rate())
    std::swap(before, after);
  const double hits = before.hits + after.hits;
  if (!(hits > 0) || !(before.of > 0) || !(after.of > 0))
    return 1;
  const double part = after.of / (before.of + after.of);
  const Tail tail{
      .hits = after.hits, .all = hits, .mean = hits * part, .variance = hits * part * (1 - part)};
  const double log_first =
      log_choose(hits, after.hits) + after.hits * std::log(part) + before.hits * std::log1p(-part);
  return doubled(sum_tail(tail, log_first,
                          [&](double x) { return (hits - x) * part / ((x + 1) * (1 - part)); }));
}

double smallest_p_value(double hits, double before_of, double after_of) {
  // Sampling without replacement makes the p-value a little smaller still.
  const double all = before_of + after_of;
  if (!(all > 0))
    return 1;
  const double lesser = std::min(before_of, after_of) / all;
  return std::min(1.0, 2 * std::pow(lesser, hits));
}

Interval share_interval(Seen before, Seen after, double z) {
  if (!(before.of > 0) || !(after.of > 0))
    return {-1, 1};
  return put_together(before, after, wilson(before, z), wilson(after, z));
}

Interval rate_interval(Seen before, Seen after, double z) {
  if (!(before.of > 0) || !(after.of > 0))
    return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  return put_together(before, after, poisson_score(before, z), poisson_score(after, z));
}

}  // namespace pe::painting
