// Formats the parts of messages: short and harmless input text, counts, shares, durations, file
// names.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace pe {

bool is_control(char32_t c);

/// Returns whether `c` changes the direction of text or ends a line.  Such a character can make a
/// name look like another.  U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 are in
/// the Unicode Standard Annex 9, table of explicit formatting characters.  U+2028 and U+2029 end
/// lines.
bool is_deceiving(char32_t c);

/// Returns `text` without characters that could deceive a terminal or a reader.  Control characters
/// and bytes that are not UTF-8 become \xNN.  Line separators and characters that change the
/// direction of text become \uNNNN.
std::string printable(std::string_view text);

/// Does the same to whole lines of a tool's result: line ends, tabs and the colours that our tools
/// write stay.
std::string printable_text(std::string_view text);

/// Returns `text` between single quotes.  Every byte that is not printable ASCII becomes \xNN.  All
/// bytes beyond `limit` become one "...".
inline std::string in_quotes(std::string_view text, std::size_t limit = 60) {
  std::string out = "'";
  for (const char c : text.substr(0, limit)) {
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  if (text.size() > limit)
    out += "...";
  return out += '\'';
}

// Formats the counts in every closing line: "1 sample", "2 samples".

/// Returns `count` and the noun, with an "s" ("es" after an "s") unless `count` is 1.
inline std::string plural(std::uint64_t count, std::string_view noun) {
  const std::string_view ending = noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : ending);
}

// Formats shares of which 100 % must mean all: "99.9 %".

/// Returns the share in percent, with one decimal, rounded down.  `of` must not be 0.
inline std::string share_rounded_down(double part, double of) {
  constexpr double kPerMille = 1000;
  return fmt::format("{:.1f} %", std::floor(kPerMille * part / of) / 10);
}

// Writes a duration for people: "12.3 ms".

/// Returns the duration with three digits, in the unit in which it is 1 or more.
inline std::string duration_text(std::uint64_t ns) {
  const auto in = [ns](std::uint64_t unit, const char* name) {
    return fmt::format("{:.3g} {}", static_cast<double>(ns) / static_cast<double>(unit), name);
  };
  if (ns >= 1'000 * kNsPerSecond)  // no exponent
    return fmt::format("{} s", ns / kNsPerSecond);
  if (ns >= kNsPerSecond)
    return in(kNsPerSecond, "s");
  if (ns >= kNsPerMs)
    return in(kNsPerMs, "ms");
  return ns >= kNsPerUs ? in(kNsPerUs, "us") : in(1, "ns");
}

// The last part of a path.

/// Returns the part after the last '/', or the whole path if nothing follows the '/'.  Returns at
/// most 255 bytes (NAME_MAX), because only malicious input has a longer name.
inline std::string_view file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  constexpr std::size_t kMaxBytes = 255;
  const bool has_folder = slash != std::string_view::npos && slash + 1 != path.size();
  return (has_folder ? path.substr(slash + 1) : path).substr(0, kMaxBytes);
}

}  // namespace pe
