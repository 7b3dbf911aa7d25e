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
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace pe::painting {

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

}  // namespace pe::painting
