// Which allocations are sampled, and what a sample stands for.
//
// Points lie on the sequence of allocated bytes, at random distances of `mean` bytes on average
// (exponentially distributed, so that it does not matter where one begins to count).  A block with
// a point in it is a sample, which a block of s bytes is with probability p = 1 - exp(-s / mean).
// It stands for 1 / p blocks of its size: sums of bytes and counts are right on average.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "malloctrace/preload/memory/account.h"

namespace pe::malloctrace {

/// What a sampled block of `bytes` stands for; counts are in units of 1/256.  The same each time,
/// so that a block's end takes away what its beginning has added.
Weight sample_weight(std::uint64_t bytes, std::uint64_t mean) noexcept;

/// Random distances between points.
class SampleDistance {
 public:
  /// Any seed.
  void start(std::uint64_t seed) noexcept { state_ = seed | 1; }
  /// In bytes, at least 1.
  std::uint64_t next(std::uint64_t mean) noexcept;

 private:
  std::uint64_t state_;
};

// Without libm, which the program may not have.  Relative errors are below 1e-9.
double natural_logarithm(double positive) noexcept;  ///< of a normal number
/// 1 - exp(-x), for x >= 0.
double one_minus_exp_of_minus(double x) noexcept;

}  // namespace pe::malloctrace
