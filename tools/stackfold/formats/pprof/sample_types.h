// The numbers that a pprof profile gives for each stack ("samples/count cpu/nanoseconds"),
// and which of them are folded.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "folded/folded_counts.h"
#include "stackfold/options.h"

namespace pe::fold {

struct SampleType {
  std::string type;  ///< "cpu", "alloc_space"
  std::string unit;  ///< "nanoseconds", "bytes"
};

/// One number a stack, or each with its type as root frame; nanoseconds become microseconds.
class SampleTypes {
 public:
  /// `counts` must outlive this.
  SampleTypes(folded::FoldedCounts& counts, const Options& options)
      : counts_(counts), options_(options), in_ns_(counts.frames()) {}

  /// Which of `types` to fold: the one that was asked for by type or "type/unit", else
  /// `default_type`.  False if there is none of that name.
  bool choose(std::span<const SampleType> types, std::size_t default_type);

  /// How many numbers a stack must have, that none of what is folded is missing.
  [[nodiscard]] std::size_t values_needed() const { return columns_.back().index + 1; }

  /// Adds a stack, root first, with the number of one type; nothing if that is not to be folded.
  void add(std::span<const folded::FrameId> stack, std::size_t type, std::uint64_t value);

  /// To be called after the last stack.
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

/// "no sample type 'x': it has samples, cpu".
std::string no_such_type(std::string_view wanted, std::span<const SampleType> types);

}  // namespace pe::fold
