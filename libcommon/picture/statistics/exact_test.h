// Did a share of the samples change, or would drawing again differ as much?
//
// Exact tests condition on how often a frame was seen in both profiles together, so they hold for
// the rare frames that most of a profile consists of.  The normal approximation does not: where
// one profile is ten times as long as the other it is wrong by a factor of a million in the tail,
// and the tail is what a correction for 10,000 frames looks at.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::picture {

/// How often something was seen, and in how many samples or runs one has looked.
struct Seen {
  double hits = 0;
  double of = 0;

  [[nodiscard]] double rate() const { return of > 0 ? hits / of : 0; }
};

/// The ends of a confidence interval.
struct Interval {
  double low = 0, high = 0;
};

/// Shares of samples: Fisher's exact test (Fisher, Statistical Methods for Research Workers, 5th
/// ed. 1934), two-sided by doubling; at most 1.  Hits need not be whole numbers.
/// Cost: 0.2 us, and 5 ns for each standard deviation's worth of samples up to 100.
double share_p_value(Seen before, Seen after);

/// Counts in the same amount of looking: the conditional test of two Poisson rates (Przyborowski
/// and Wilenski, Biometrika 31, 1940), likewise.
double rate_p_value(Seen before, Seen after);

/// What either test would say if all `hits` of both were on one side, or more.
double smallest_p_value(double hits, double before_of, double after_of);

/// Of after.rate() - before.rate(), with Wilson's limits of each put together: method 10 of
/// Newcombe, Statistics in Medicine 17 (1998) 873-890.  `z`: the normal quantile of the level.
Interval share_interval(Seen before, Seen after, double z);

/// The same with the score limits of Poisson rates in place of Wilson's.
Interval rate_interval(Seen before, Seen after, double z);

}  // namespace pe::picture
