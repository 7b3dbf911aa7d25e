// A colour for a frame, decided by its name alone, so that the same profile
// always gives the same picture.
//
// The palettes and their numbers are those of flamegraph.pl; `kind` is ours.
// Marks at the end of a name say what code it is: _[k] kernel, _[j] compiled
// while running (JIT), _[i] inlined, _[l] shared library, _[w] waker,
// _[o] waiting (off-CPU).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pe::picture {

struct Rgb {
  std::uint8_t r, g, b;
  bool operator==(const Rgb&) const = default;
};

enum class Palette {
  kHot,
  kMem,
  kIo,
  kWakeup,
  kChain,
  kJava,
  kJs,
  kPerl,
  kRed,
  kGreen,
  kBlue,
  kAqua,
  kYellow,
  kPurple,
  kOrange,
  kKind,        ///< by mark: kernel orange, JIT green, library blue, unresolved grey, the rest warm
  kBlack,       ///< of flamegraph.pl for palettes that it does not know; has no name
  kHotCold,     ///< by mark: what waits blue, the rest hot
  kColorblind,  ///< by mark as well, in colours that people tell apart who see few
};

/// Where within a palette's range a name lies.
enum class Shade {
  kBySum,     ///< by the sum of its characters: neighbours differ
  kByHash,    ///< by its first characters: similar names look similar
  kByChance,  ///< anywhere, but the same for equal names and seeds
};

/// From top to bottom of the page.
struct Background {
  Rgb top, bottom;
  bool operator==(const Background&) const = default;
};

/// nullopt if no palette has that name.
std::optional<Palette> find_palette(std::string_view name);
/// All names, for help and messages: "hot, mem, ...".
std::string palette_names();

/// `seed` is for kByChance.
Rgb frame_color(Palette palette, Shade shade, std::string_view name, std::uint64_t seed = 0);

/// Frames "--" and "-" divide stacks and look the same everywhere; nullopt for any other.
std::optional<Rgb> separator_color(std::string_view name);

/// Of a frame that changed by `delta` where the largest change is `largest`: the
/// deeper red the more it grew, the deeper blue the more it shrank.
Rgb difference_color(double delta, double largest);

/// What a colour means.
struct LegendEntry {
  Rgb color;
  std::string_view meaning;
};
/// Of differences.
std::vector<LegendEntry> difference_legend();
/// Empty unless the palette's colours have meanings: `kind`, `colorblind` and `hotcold`.
std::vector<LegendEntry> legend_of(Palette palette);

/// The one that goes with the palette.
Background default_background(Palette palette);
/// "yellow", "blue", "green", "grey" or "#rrggbb"; nullopt for anything else.
std::optional<Background> find_background(std::string_view name);

/// `name` as it is shown: without the mark at its end.
std::string_view without_mark(std::string_view name);

}  // namespace pe::picture
