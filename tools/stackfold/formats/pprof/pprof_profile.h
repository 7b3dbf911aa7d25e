// What a pprof profile says, taken apart (profile.proto).
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stackfold/formats/pprof/sample_types.h"

namespace pe::fold::pprof {

/// Indexes of strings are as the profile has them: not yet checked.
struct Mapping {
  std::uint64_t start = 0, file_offset = 0;
  std::int64_t file_name = 0;
};

/// One function at an address; the innermost inlined one comes first.
struct Line {
  std::uint64_t function_id = 0;
};

struct Location {
  std::uint64_t mapping_id = 0;
  std::uint64_t address = 0;
  std::vector<Line> lines;
};

/// The tables of a profile.  Views are of the bytes that it was read from.
struct Profile {
  std::vector<std::string_view> strings;
  std::vector<std::pair<std::int64_t, std::int64_t>> types;  ///< type and unit, as strings
  std::int64_t default_type = 0;
  boost::unordered_flat_map<std::uint64_t, Mapping> mappings;
  boost::unordered_flat_map<std::uint64_t, Location> locations;
  boost::unordered_flat_map<std::uint64_t, std::int64_t> functions;  ///< id -> name
  std::vector<std::string_view> samples;                             ///< not yet taken apart
  std::string damage;  ///< empty, or why reading stopped

  /// Whether there is a string of that number; 0 is the empty one, also of an empty table.
  [[nodiscard]] bool defines_string(std::int64_t index) const {
    return index == 0 || (index > 0 && static_cast<std::uint64_t>(index) < strings.size());
  }
  /// "" if there is none of that number.
  [[nodiscard]] std::string_view string(std::int64_t index) const {
    return index >= 0 && static_cast<std::uint64_t>(index) < strings.size()
               ? strings[static_cast<std::size_t>(index)]
               : std::string_view{};
  }
};

struct Label {
  std::int64_t key = 0, text = 0, number = 0;  ///< key and text: strings
};

struct Sample {
  std::vector<std::uint64_t> location_ids;  ///< leaf first
  std::vector<std::int64_t> values;
  std::vector<Label> labels;
};

/// Takes the tables of a profile apart, as far as it is whole.
Profile read_profile(std::string_view bytes);

/// How deep a stack may be: every recursion that a process can hold.
inline constexpr std::size_t kMaxFrames = 1UL << 20U;

/// How many labels a sample may have; what comes behind them is dropped.
inline constexpr std::size_t kMaxLabels = 1000;

/// False if it is damaged or too deep; `sample` is then of no use.
bool read_sample(std::string_view bytes, Sample& sample);

}  // namespace pe::fold::pprof
