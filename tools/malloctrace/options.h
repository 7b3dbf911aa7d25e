// malloctrace's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/cli/run.h"
#include "base/parse_number.h"
#include "recording/session.h"

// Strict parsing of byte counts: "4096", "512K", "1g".  K, M and G are 1024 and its powers.

namespace pe {

/// Returns nullopt if `text` is not exactly one such number, or exceeds 1024G.
inline std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KkMmGg";
  constexpr unsigned kShiftOfUnit = 10;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40U;
  unsigned shift = 0;
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  if (unit != kUnits.npos) {
    shift = kShiftOfUnit * static_cast<unsigned>(unit / 2 + 1);
    text.remove_suffix(1);
  }
  const auto number = parse_number<std::uint64_t>(text);
  if (!number || *number > (kMost >> shift))
    return std::nullopt;
  return *number << shift;
}

}  // namespace pe

namespace pe::malloctrace {

struct Options : recording::SessionRequest {
  std::uint64_t sample_bytes = 0;  ///< 0: every allocation
  std::uint32_t max_depth = 0;     ///< frames; 0: all
  bool with_mmap = false;
  bool follow = true;                        ///< processes that the command starts
  std::optional<std::uint64_t> snapshot_ns;  ///< one each time so much has passed
  bool report = false;                       ///< text instead of the stream
  std::size_t top = 10;                      ///< sites in each table of the report
  bool lines = false;                        ///< source lines in the report
  std::optional<std::uint64_t> leak_age_ns;  ///< leaks are shown that grew within this time
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::malloctrace
