// Divides the counts of stacks by time, into steps of equal length.
//
// The parts of a stack's count add up to the count, without rounding.  A part takes 24 bytes, and
// parts of one stack in one step are joined now and then.  A wait over many steps takes four parts,
// however long it is.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "folded/count.h"

namespace pe::folded {

using StackId = std::uint32_t;

class Timeline {
 public:
  /// The most steps, so that a damaged time cannot fill the disk.
  static constexpr std::int32_t kMostSteps = 1'000'000;
  /// The longest step: all times in kMostSteps fit 64 bits.
  static constexpr std::uint64_t kMostStepNs = 3'600'000'000'000;

  /// `step_ns` is from 1 to kMostStepNs.  A count of 1 is `ns_per_count`, 1 or 1000, of time.
  Timeline(std::uint64_t step_ns, std::uint64_t ns_per_count)
      : step_ns_(step_ns), ns_per_count_(ns_per_count) {}

  /// Notes that the profile covers this time.  The first step starts at the first time that was
  /// noted, or as many whole steps earlier as an earlier time needs.  Throws Error if there are
  /// more than kMostSteps.
  void note(std::uint64_t begin_ns, std::uint64_t end_ns);

  /// Adds to a stack's count in the step of this time, which was noted.
  void add(std::uint64_t time_ns, StackId stack, Count count);
  /// Adds the time from `begin_ns` to `end_ns`, which were noted, to the steps that it covers.
  void add_span(std::uint64_t begin_ns, std::uint64_t end_ns, StackId stack);
  /// Converts a time to a count.
  [[nodiscard]] Count count_of(std::uint64_t ns) const noexcept {
    return {.whole = ns / ns_per_count_,
            .billionths =
                static_cast<std::uint32_t>(ns % ns_per_count_ * (Count::kOne / ns_per_count_))};
  }

  /// Gives each stack a new number; drops the stacks without one.
  void renumber(std::span<const std::optional<StackId>> numbers);

  /// Calls visit(step, stack, count) for each stack in each step, in order of time; in a step in
  /// the order of `rank_of`, which has a rank for each stack.
  using Visit = std::function<void(std::int32_t, StackId, Count)>;
  void visit(std::span<const std::uint32_t> rank_of, const Visit& visit);

  /// The first step that was noted.
  [[nodiscard]] std::int32_t first() const noexcept { return first_; }
  /// Returns the start of a step.  Only steps that contain a noted time, and those between them,
  /// have one that fits.
  [[nodiscard]] std::uint64_t start_of(std::int32_t step) const;
  /// Returns the root frame of a step: "@12.300" (time_root.h), the seconds from the start of the
  /// first step.
  [[nodiscard]] std::string label(std::int32_t step) const;

 private:
  struct Part {
    std::int32_t step;
    StackId stack;
    Count count;
  };
  /// From `step` on, a stack covers each whole step `times` times more; fewer if negative.
  struct Turn {
    std::int32_t step;
    StackId stack;
    std::int64_t times;
  };

  [[nodiscard]] std::int32_t step_of(std::uint64_t time_ns) const;
  void push(const Part& part);
  void push(const Turn& turn);

  std::uint64_t step_ns_, ns_per_count_;
  std::optional<std::uint64_t> origin_ns_;  ///< the start of step 0
  std::int32_t first_ = 0, last_ = 0;       ///< the steps that were noted
  std::vector<Part> parts_;
  std::vector<Turn> turns_;
  std::size_t join_parts_at_ = kLeastToJoin, join_turns_at_ = kLeastToJoin;
  static constexpr std::size_t kLeastToJoin = 1UL << 20U;
};

}  // namespace pe::folded
