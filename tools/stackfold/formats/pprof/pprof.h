// Reads profiles in the format of pprof, gzip-compressed or not, from Go and many other runtimes
// and profilers.
//
// String numbers refer to a table that may follow them, so the reader holds the profile in memory,
// up to a limit.
//
// Source: proto/profile.proto of github.com/google/pprof.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stackfold/formats/format.h"
#include "stackfold/formats/pprof/sample_types.h"

namespace pe::fold::pprof {

// Parses the messages of a pprof profile (profile.proto).

/// String indexes come from the profile and are not yet validated.
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

/// The tables of a profile.  The views refer to the bytes given to read_profile().
struct Profile {
  std::vector<std::string_view> strings;
  std::vector<std::pair<std::int64_t, std::int64_t>> types;  ///< type and unit, as strings
  std::int64_t default_type = 0;
  boost::unordered_flat_map<std::uint64_t, Mapping> mappings;
  boost::unordered_flat_map<std::uint64_t, Location> locations;
  boost::unordered_flat_map<std::uint64_t, std::int64_t> functions;  ///< id -> name
  std::vector<std::string_view> samples;                             ///< not yet parsed
  std::string damage;  ///< empty, or why reading stopped

  /// Does a string have that number?  0 is the empty string, even if the table is empty.
  [[nodiscard]] bool defines_string(std::int64_t index) const {
    return index == 0 || (index > 0 && static_cast<std::uint64_t>(index) < strings.size());
  }
  /// Returns "" if no string has that number.
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

/// Parses the tables of a profile, up to the first damage that prevents reading on.
Profile read_profile(std::string_view bytes);

/// The limit of a stack's depth: deeper than any recursion in a real process.
inline constexpr std::size_t kMaxFrames = 1UL << 20U;

/// The limit of labels in a sample; the reader drops further ones.
inline constexpr std::size_t kMaxLabels = 1000;

/// Parses a sample.  If it is damaged or too deep, returns false, and `sample` is unusable.
bool read_sample(std::string_view bytes, Sample& sample);

/// Treats all gzip data as a profile: stackfold reads no other compressed input.
bool looks_like(std::string_view head);

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// The size limit of an unpacked profile; a larger one is reported as damaged.
inline constexpr std::size_t kMaxBytes = 512UL << 20U;

}  // namespace pe::fold::pprof
