// The verdict about each function: one word for both of its changes.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "flamediff/comparison.h"

namespace pe::flamediff {

struct Verdict {
  painting::Noise noise = painting::Noise::kUnknown;
  bool is_of_self = false;  ///< only what the function itself counts changed beyond noise
  double change = 0;        ///< that of the function with its callees, or of itself
  painting::Interval interval;
};

/// Refers to its arguments, which must outlive it.
class Verdicts {
 public:
  Verdicts(const painting::CallTree& tree, const Comparison& comparison)
      : tree_(tree), comparison_(comparison) {}

  [[nodiscard]] Verdict of(std::uint32_t name) const;
  /// Returns the functions that changed: those beyond noise first, larger changes first.
  [[nodiscard]] std::vector<std::uint32_t> changed() const;

 private:
  [[nodiscard]] bool is_growth_of_a_program(std::uint32_t name) const;

  const painting::CallTree& tree_;
  const Comparison& comparison_;
};

/// Writes an interval as "-1.00% .. +2.00%".
std::string interval_text(painting::Noise noise, const painting::Interval& interval);

/// Returns the word of a change: "sure", "noise", "rare" or "?".
std::string_view word_for(painting::Noise noise);

}  // namespace pe::flamediff
