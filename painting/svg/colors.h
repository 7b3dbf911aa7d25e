// Chooses the colour of a frame by its name alone, so that the same profile
// always gives the same flame graph.
//
// The palettes and their numbers are those of flamegraph.pl, except `kind`,
// `colorblind`, `hotcold` and `warm`.
// A mark at the end of a name gives the kind of code: _[k] kernel, _[j] compiled
// at run time (JIT), _[i] inlined, _[l] shared library, _[s] script,
// _[t] a function that returned by a tail call, _[w] waker, _[o] waiting (off-CPU).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pe::painting {

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
  kKind,        ///< by mark: kernel orange, JIT green, script violet, library blue, unresolved
                ///< grey, the rest warm
  kBlack,       ///< flamegraph.pl uses it for unknown palettes; has no name
  kHotCold,     ///< by mark: waiting frames blue, the rest warm
  kColorblind,  ///< by mark, in colours that colour-blind people can distinguish
  kWarm,        ///< salmon to sand: `hot`, less saturated
  kCold,        ///< pale blue, of waiting frames in kHotCold; has no name
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

/// Returns the palette that colours `name`: unresolved names are as grey as in `kind` in every
/// palette whose colours have no meaning.
Palette palette_for(Palette palette, std::string_view name);

/// True if white is easier to read on `fill` than black.  Whichever is easier has a contrast of at
/// least 4.5:1 by WCAG 2.1.
bool wants_white_text(Rgb fill);

inline constexpr Rgb kWhite{255, 255, 255};
inline constexpr Rgb kUnchanged{236, 236, 236};  ///< visible on white paper

/// Returns the colour of a frame that changed by `delta`; `largest` is the largest change.  The
/// more a frame grew, the deeper its red; the more it shrank, the deeper its blue.  `same` is the
/// colour of one that did not change.
Rgb difference_color(double delta, double largest, Rgb same = kUnchanged);

/// A colour and its meaning.
struct LegendEntry {
  enum class Sample { kFilled, kFramed, kDashed };

  Rgb color;
  std::string meaning;
  Sample sample = Sample::kFilled;
};
/// The legend of `kind`, `colorblind` and `hotcold`; empty for the other palettes, whose colours
/// have no meaning.
std::vector<LegendEntry> legend_of(Palette palette);
/// Returns the meaning in legend_of() that the colour of `name` has; empty if it has none.
std::string_view meaning_of(Palette palette, std::string_view name);

/// Collects changes, for a legend of difference_color() that lists only those that occur.
class DifferenceLegend {
 public:
  void add(double change) { (change > 0 ? grew_ : change < 0 ? shrank_ : same_) = true; }
  [[nodiscard]] std::vector<LegendEntry> entries() const;

 private:
  bool grew_ = false, shrank_ = false, same_ = false;
};

/// The background that flamegraph.pl has for the palette.
Background default_background(Palette palette);
/// Parses "yellow", "blue", "green", "grey", "gray" or "#rrggbb"; nullopt for anything else.
std::optional<Background> find_background(std::string_view name);

/// True if the name has one of the marks of kinds of code, which `kind` shows.
bool has_kind_mark(std::string_view name);

/// Returns `name` as shown: without the mark at its end.
std::string_view without_mark(std::string_view name);

/// Does its mark say that the function returned by a tail call?
bool is_tail_call(std::string_view name);

// Infers the kind of code from a frame's name: from its mark and its spelling.
//
// These are heuristics: they do not mistake a C++ function in a namespace `org` for Java, but
// would mistake a C function named `0xbeef` or `mod+0x1` for an address.

enum class NameKind {
  kUser,
  kKernel,
  kJit,
  kInlined,
  kLibrary,
  kScript,
  kUnresolved,
  kWait,  ///< this and the next: what a thread waited for; this: anything else
  kReady,
  kLock,
  kSleep,
  kIo,
  kFault,
  kChild
};

/// The kinds of waits, and the names of their frames: "[lock]_[o]".
inline constexpr std::pair<NameKind, std::string_view> kKindsOfWaits[] = {
    {NameKind::kReady, "waiting for a CPU"},
    {NameKind::kLock, "lock"},
    {NameKind::kIo, "I/O"},
    {NameKind::kSleep, "sleep"},
    {NameKind::kFault, "page fault"},
    {NameKind::kChild, "child process"},
    {NameKind::kWait, "other wait"}};

/// Names "[...]", bare hexadecimal numbers and "module+0x..." are unresolved, whatever their mark;
/// but "[sleep]_[o]" is what a thread waited for.
NameKind kind_of_name(std::string_view name);

/// For palettes that depend on names (java, js, perl, wakeup, chain, hotcold), returns the plain
/// palette for `name`.  Returns any other palette unchanged.
Palette hue_of_name(Palette palette, std::string_view name);

}  // namespace pe::painting
