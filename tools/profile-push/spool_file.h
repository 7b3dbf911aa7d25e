// A profile as it waits in the spool: what its file is called and what is in it.
//
//   1763809200000-1763809260000-0.pprof.gz
//
// Two times in milliseconds of Unix time, of 13 digits so that names sort by age: when the profile
// begins and ends; and a number that tells profiles of the same times apart.  The file is
// gzip data (RFC 1952) of two members: one that is empty but for its comment,
// "stackpipe-push 1 RATE_HZ SERIES", and the profile as it came.  So whatever reads pprof
// profiles reads a spooled one.
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pe::push {

/// Of Unix time; the end is not before the beginning.
struct TimeRange {
  std::uint64_t from_ms = 0, until_ms = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the 0 behind <=>
  auto operator<=>(const TimeRange&) const = default;
};

/// The last time that 13 digits hold, in the year 2286.
inline constexpr std::uint64_t kLastTimeMs = 9'999'999'999'999;

/// A larger one is none: it has to be in memory to be sent.
inline constexpr std::uint64_t kMostProfileBytes = std::uint64_t{1} << 30U;

struct SpoolName {
  TimeRange times;
  std::uint32_t number = 0;

  /// Oldest first.
  // NOLINTNEXTLINE(modernize-use-nullptr): as above
  auto operator<=>(const SpoolName&) const = default;
  [[nodiscard]] std::string text() const;
};

/// nullopt unless `name` is exactly the text of one.
[[nodiscard]] std::optional<SpoolName> parse_spool_name(std::string_view name);

/// What of a profile is not in its file's name.
struct SpooledProfile {
  std::string_view series;    ///< series.h
  std::uint32_t rate_hz = 0;  ///< 0: not known
  std::string_view pprof;     ///< gzip data
};

[[nodiscard]] std::string spool_content(const SpooledProfile& profile);

/// nullopt if `content` was not written by spool_content().  The result dies with `content`.
[[nodiscard]] std::optional<SpooledProfile> parse_spool_content(std::string_view content);

}  // namespace pe::push
