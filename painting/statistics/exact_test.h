// Tests whether a share of the samples changed, or whether sampling again would differ as much.
//
// Exact tests condition on how often a frame was seen in both profiles together.  They hold for
// rare frames, of which most of a profile consists.  The normal approximation does not: if one
// profile is ten times as long as the other, its tail is wrong by a factor of a million.
// A correction for 10,000 frames depends on that tail.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::painting {

/// Number of hits, and number of samples or units of work that were searched for them.
struct Seen {
  double hits = 0;
  double of = 0;

  [[nodiscard]] double rate() const { return of > 0 ? hits / of : 0; }
};

/// The ends of a confidence interval.
struct Interval {
  double low = 0, high = 0;
};

/// Compares shares of samples by Fisher's exact test (Fisher, Statistical Methods for Research
/// Workers, 5th ed. 1934), two-sided by doubling; at most 1.  Hits need not be whole numbers.
/// Costs 0.2 us, plus 5 ns for each sample of the standard deviation, up to 100 samples.
double share_p_value(Seen before, Seen after);

/// Compares counts per unit of `of` by the conditional test of two Poisson rates (Przyborowski
/// and Wilenski, Biometrika 31, 1940); two-sided and limited like share_p_value().
double rate_p_value(Seen before, Seen after);

/// Returns an upper bound on the smallest p-value of both tests.  They give the smallest p-value
/// if all `hits` are on one side.
double smallest_p_value(double hits, double before_of, double after_of);

/// Returns the interval of after.rate() - before.rate(), combined from Wilson's limits of both
/// rates: method 10 of Newcombe, Statistics in Medicine 17 (1998) 873-890.
/// `z`: the normal quantile of the level.
Interval share_interval(Seen before, Seen after, double z);

/// Like share_interval(), with the score limits of Poisson rates instead of Wilson's.
Interval rate_interval(Seen before, Seen after, double z);

}  // namespace pe::painting
