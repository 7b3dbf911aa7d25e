// Selects the sampled allocations, and computes the weight of a sample.
//
// Points are on the sequence of allocated bytes, at random distances of `mean` bytes on average.
// The distances are exponentially distributed, so it does not matter where counting starts.  A
// block with a point in it is a sample.  A block of s bytes is one with probability p = 1 - exp(-s
// / mean).  It represents 1 / p blocks of its size, so sums of bytes and counts are right on
// average.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "malloctrace/preload/memory/account.h"

namespace pe::malloctrace {

/// Returns the weight of a sampled block of `bytes`; counts are in units of 1/256.  The result is
/// always the same, so freeing a block subtracts the weight that its allocation has added.
Weight sample_weight(std::uint64_t bytes, std::uint64_t mean) noexcept;

/// Random distances between points.
class SampleDistance {
 public:
  /// Accepts any seed.
  void start(std::uint64_t seed) noexcept { state_ = seed | 1; }
  /// Returns a distance in bytes, at least 1.
  std::uint64_t next(std::uint64_t mean) noexcept;

 private:
  std::uint64_t state_;
};

// These work without libm, which the program may not have.  Relative errors are below 1e-9.
double natural_logarithm(double positive) noexcept;  ///< of a normal number
/// 1 - exp(-x), for x >= 0.
double one_minus_exp_of_minus(double x) noexcept;

}  // namespace pe::malloctrace
