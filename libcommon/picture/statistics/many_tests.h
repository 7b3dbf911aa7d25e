// Many questions asked of the same samples: which answers stand.
//
// Holm's procedure (Scandinavian Journal of Statistics 6, 1979, 65-70) bounds the probability that
// even one answer is wrong, however the questions depend on each other.  Frames depend in every
// way: a caller contains its callees, and where one share grows others must shrink.  Benjamini and
// Hochberg's procedure would find more, but promises only that few of many answers are wrong,
// and proves it for positive dependence; what stops a merge should not be one of those few.
//
// Frames that are too rare to be told from noise whatever happened to them are no questions
// (Tarone, Biometrics 46, 1990, 515-522).  Most frames of a profile are.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace pe::picture {

/// The largest p-value that a question may have at best to be asked, so that few enough are.
/// `smallest`: for each, the p-value that it has at best; none of it may depend on which side the
/// samples are.  `level`: the probability of a wrong answer that is accepted, 0.05.
double asked_below(std::vector<double> smallest, double level);

struct Decision {
  /// Answers with a p-value up to here stand, the others do not.
  double threshold = 0;
  std::size_t standing = 0;
};

/// `p_values`: of all questions that were asked.
Decision holm(std::vector<double> p_values, double level);

}  // namespace pe::picture
