// Chooses the colour of a frame by its name alone, so that the same profile
// always gives the same flame graph.
//
// The palettes and their numbers are those of flamegraph.pl, except `kind`,
// `colorblind` and `hotcold`.
// A mark at the end of a name gives the kind of code: _[k] kernel, _[j] compiled
// at run time (JIT), _[i] inlined, _[l] shared library, _[w] waker,
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
  kBlack,       ///< flamegraph.pl uses it for unknown palettes; has no name
  kHotCold,     ///< by mark: waiting frames blue, the rest hot
  kColorblind,  ///< by mark, in colours that colour-blind people can distinguish
};

/// How a name selects a colour within a palette's range.
enum class Shade {
  kBySum,     ///< by the sum of its characters: neighbours differ
  kByHash,    ///< by its first characters: similar names look similar
  kByChance,  ///< pseudo-random, the same for equal names and seeds
};

/// A gradient from the top to the bottom of the page.
struct Background {
  Rgb top, bottom;
  bool operator==(const Background&) const = default;
};

/// nullopt if no palette has that name.
std::optional<Palette> find_palette(std::string_view name);
/// Returns all names, for help and messages: "hot, mem, ...".
std::string palette_names();

/// Returns the colour of a frame.  Only kByChance uses `seed`.
Rgb frame_color(Palette palette, Shade shade, std::string_view name, std::uint64_t seed = 0);

/// Returns the colour of the separators "--" and "-", the same in all palettes; nullopt for any
/// other name.
std::optional<Rgb> separator_color(std::string_view name);

/// Returns the colour of a frame that changed by `delta`; `largest` is the largest change.  The
/// more a frame grew, the deeper its red; the more it shrank, the deeper its blue.
Rgb difference_color(double delta, double largest);

/// A colour and its meaning.
struct LegendEntry {
  Rgb color;
  std::string_view meaning;
};
/// The legend of difference_color().
std::vector<LegendEntry> difference_legend();
/// The legend of `kind`, `colorblind` and `hotcold`; empty for the other palettes, whose colours
/// have no meaning.
std::vector<LegendEntry> legend_of(Palette palette);

/// The background that suits the palette.
Background default_background(Palette palette);
/// Parses "yellow", "blue", "green", "grey", "gray" or "#rrggbb"; nullopt for anything else.
std::optional<Background> find_background(std::string_view name);

/// Returns `name` as shown: without the mark at its end.
std::string_view without_mark(std::string_view name);

}  // namespace pe::picture
