// Chooses which of the values that a profile has for each stack ("samples/count cpu/nanoseconds")
// are folded.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "stackfold/folded_counts.h"
#include "stackfold/options.h"

namespace pe::fold {

struct SampleType {
  std::string type;  ///< "cpu", "alloc_space"
  std::string unit;  ///< "nanoseconds", "bytes"
};

/// Folds one value of each stack, or all of them, each with its type as root frame.  Converts
/// nanoseconds to microseconds.
class SampleTypes {
 public:
  /// `counts` must outlive this.
  SampleTypes(folded::FoldedCounts& counts, const Options& options)
      : counts_(counts), options_(options), in_ns_(counts.frames()) {}

  /// Chooses which of `types` to fold: all with --all-events, else the one requested as "type" or
  /// "type/unit", else `default_type`.  False if no type has the requested name.
  bool choose(std::span<const SampleType> types, std::size_t default_type);

  /// Returns how many values a stack must have so that no folded value is missing.
  [[nodiscard]] std::size_t values_needed() const { return columns_.back().index + 1; }

  /// Adds a stack, root first, with the value of one type.  Ignores types that are not folded.
  void add(std::span<const folded::FrameId> stack, std::size_t type, std::uint64_t value);

  /// Must be called after the last stack.
  void finish() { counts_.add_divided(in_ns_, kNsPerUs); }

 private:
  struct Column {
    std::size_t index;  ///< among the types
    bool is_ns;
    std::optional<folded::FrameId> root;
  };

  folded::FoldedCounts& counts_;
  const Options& options_;
  folded::FoldedCounts in_ns_;
  std::vector<Column> columns_;
  std::vector<folded::FrameId> with_root_;
};

/// Returns "no sample type 'x' (it has samples, cpu)".
std::string no_such_type(std::string_view wanted, std::span<const SampleType> types);

}  // namespace pe::fold
