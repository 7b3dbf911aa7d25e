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
#include <string_view>

#include "malloctrace/preload/memory/account.h"
#include "recording/inprocess/runtime/settings_text.h"

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

// The settings that malloctrace gives the library in the environment variable MALLOCTRACE:
//
//     socket=NAME,key=TEXT,sample=BYTES,depth=N,mmap=1,follow=0
//
// NAME is that of an abstract unix socket, without its leading zero byte and without commas.
// Malformed and unknown fields are ignored, so library and tool may differ in version.

inline constexpr std::string_view kSettingsVariable = "MALLOCTRACE";

struct Settings {
  inprocess::ShortText socket;     ///< empty: nothing is traced
  inprocess::ShortText key;        ///< sent with the memory, see recording/inprocess/listener.h
  std::uint64_t sample_bytes = 0;  ///< mean distance of samples; 0: every allocation
  std::uint32_t depth = 0;         ///< number of innermost frames to keep; 0: all
  bool traces_mmap = false;
  bool follows_forks = true;
};

Settings parse_settings(std::string_view text) noexcept;

}  // namespace pe::malloctrace
