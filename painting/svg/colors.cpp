// SPDX-License-Identifier: MIT
#include "painting/svg/colors.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash_bytes.h"
#include "base/parse_number.h"
#include "base/utf8.h"

namespace pe::painting {
namespace {

struct PaletteName {
  std::string_view name;
  Palette palette;
};

constexpr PaletteName kPalettes[] = {
    {"hot", Palette::kHot},
    {"mem", Palette::kMem},
    {"io", Palette::kIo},
    {"wakeup", Palette::kWakeup},
    {"chain", Palette::kChain},
    {"java", Palette::kJava},
    {"js", Palette::kJs},
    {"perl", Palette::kPerl},
    {"red", Palette::kRed},
    {"green", Palette::kGreen},
    {"blue", Palette::kBlue},
    {"aqua", Palette::kAqua},
    {"yellow", Palette::kYellow},
    {"purple", Palette::kPurple},
    {"orange", Palette::kOrange},
    {"kind", Palette::kKind},
    {"colorblind", Palette::kColorblind},
    {"hotcold", Palette::kHotCold},
    {"warm", Palette::kWarm},
};

/// Where a colour lies in its palette's ranges; each value is in [0, 1].
struct Position {
  double v1, v2, v3;
};

/// Uses the first number that drand48(3) returns after srand48(sum of the code points).
Position position_by_sum(std::string_view name) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << 48U) - 1;
  std::uint64_t sum = 0;
  while (!name.empty())
    sum += take_code_point(name).value;
  const std::uint64_t seed = ((sum & 0xFFFFFFFFU) << 16U) + 0x330E;
  const std::uint64_t next = (seed * 0x5DEECE66D + 0xB) & kMask;
  const double v = static_cast<double>(next) / static_cast<double>(kMask + 1);
  return {.v1 = v, .v2 = v, .v3 = v};
}

double prefix_hash(std::u32string_view name) {
  double sum = 0;
  double weight = 1;
  double weights = 1;
  for (std::size_t i = 0; i < std::min<std::size_t>(name.size(), 3); ++i) {
    const auto modulus = static_cast<std::uint32_t>(10 + i);
    sum += weight * static_cast<double>(name[i] % modulus) / (modulus - 1);
    weights += weight;
    weight *= 0.7;
  }
  return 1 - sum / weights;
}

/// DTrace writes module`function; the hash ignores the module.
std::u32string_view without_module(std::u32string_view name) {
  const auto tick = name.find(U'`', 1);
  return tick == std::u32string_view::npos ? name : name.substr(tick + 1);
}

Position position_by_hash(std::string_view name) {
  std::u32string text;
  while (!name.empty())
    text += take_code_point(name).value;
  const double forwards = prefix_hash(without_module(text));
  std::reverse(text.begin(), text.end());
  const double backwards = prefix_hash(without_module(text));
  return {.v1 = forwards, .v2 = backwards, .v3 = backwards};
}

Position position_by_chance(std::string_view name, std::uint64_t seed) {
  const std::uint64_t bits = hash_bytes(name, seed);
  const auto part = [bits](unsigned shift) {
    return static_cast<double>(bits >> shift & 0xFFFFU) / 0x10000;
  };
  return {.v1 = part(0), .v2 = part(16), .v3 = part(32)};
}

Position position_of(Shade shade, std::string_view name, std::uint64_t seed) {
  switch (shade) {
    case Shade::kByHash:
      return position_by_hash(name);
    case Shade::kByChance:
      return position_by_chance(name, seed);
    case Shade::kBySum:
      break;
  }
  return position_by_sum(name);
}

/// Returns base + range * v, truncated and limited to 0 to 255.
std::uint8_t channel(double base, double range, double v) {
  return static_cast<std::uint8_t>(std::clamp(base + range * v, 0.0, 255.0));
}

/// Returns a colour of one hue.  The palettes that depend on names consist of these hues.
Rgb plain_color(Palette palette, Position p) {
  switch (palette) {
    case Palette::kBlack:
      return {0, 0, 0};
    case Palette::kMem:
      return {0, channel(190, 50, p.v2), channel(0, 210, p.v1)};
    case Palette::kIo:
      return {channel(80, 60, p.v1), channel(80, 60, p.v1), channel(190, 55, p.v2)};
    case Palette::kRed:
      return {channel(200, 55, p.v1), channel(50, 80, p.v1), channel(50, 80, p.v1)};
    case Palette::kGreen:
      return {channel(50, 60, p.v1), channel(200, 55, p.v1), channel(50, 60, p.v1)};
    case Palette::kBlue:
      return {channel(80, 60, p.v1), channel(80, 60, p.v1), channel(205, 50, p.v1)};
    case Palette::kAqua:
      return {channel(50, 60, p.v1), channel(165, 55, p.v1), channel(165, 55, p.v1)};
    case Palette::kYellow:
      return {channel(175, 55, p.v1), channel(175, 55, p.v1), channel(50, 20, p.v1)};
    case Palette::kPurple:
      return {channel(190, 65, p.v1), channel(80, 60, p.v1), channel(190, 65, p.v1)};
    case Palette::kOrange:
      return {channel(190, 65, p.v1), channel(90, 65, p.v1), 0};
    case Palette::kCold:
      return {channel(124, 32, p.v1), channel(164, 28, p.v1), channel(214, 22, p.v1)};
    case Palette::kWarm:
      return {channel(232, 18, p.v3), channel(132, 84, p.v1), channel(92, 38, p.v2)};
    default:
      return {channel(205, 50, p.v3), channel(0, 230, p.v1), channel(0, 55, p.v2)};
  }
}

/// The page's timeline has the same colours.
Rgb wait_color(NameKind kind, Position p) {
  switch (kind) {
    case NameKind::kReady:
      return {channel(228, 16, p.v1), channel(192, 16, p.v1), channel(56, 20, p.v1)};
    case NameKind::kLock:
      return {channel(202, 16, p.v1), channel(84, 16, p.v1), channel(136, 16, p.v1)};
    case NameKind::kIo:
      return {channel(48, 16, p.v1), channel(152, 16, p.v1), channel(160, 16, p.v1)};
    case NameKind::kFault:
      return {channel(158, 16, p.v1), channel(118, 16, p.v1), channel(84, 16, p.v1)};
    case NameKind::kChild:
      return {channel(122, 16, p.v1), channel(160, 16, p.v1), channel(72, 16, p.v1)};
    case NameKind::kWait:
      return {channel(160, 16, p.v1), channel(156, 16, p.v1), channel(184, 16, p.v1)};
    default:  // sleep
      return {channel(122, 24, p.v1), channel(128, 24, p.v1), channel(214, 24, p.v1)};
  }
}

bool is_wait(NameKind kind) { return kind >= NameKind::kWait; }

/// The colours are paler than those of the plain palettes, because many kinds are side by side.
Rgb kind_color(NameKind kind, Position p) {
  switch (kind) {
    case NameKind::kKernel:
      return {channel(232, 16, p.v1), channel(138, 34, p.v1), channel(42, 30, p.v1)};
    case NameKind::kJit:
      return {channel(112, 40, p.v1), channel(182, 26, p.v1), channel(100, 34, p.v1)};
    case NameKind::kInlined:
      return {channel(244, 8, p.v1), channel(176, 26, p.v1), channel(146, 26, p.v1)};
    case NameKind::kLibrary:
      return {channel(104, 36, p.v1), channel(174, 26, p.v1), channel(206, 20, p.v1)};
    case NameKind::kScript:
      return {channel(182, 26, p.v1), channel(142, 34, p.v1), channel(206, 20, p.v1)};
    case NameKind::kUnresolved:
      return {channel(182, 26, p.v1), channel(182, 26, p.v1), channel(184, 26, p.v1)};
    case NameKind::kUser:
      break;
    default:
      return wait_color(kind, p);
  }
  return {channel(226, 16, p.v1), channel(104, 42, p.v1), channel(88, 34, p.v1)};
}

/// The colours of Okabe and Ito, "Color Universal Design" (2008), each slightly darkened by
/// name.  They also differ in brightness.
Rgb colorblind_color(NameKind kind, Position p) {
  const auto shade = [&p](double r, double g, double b) {
    const double scale = 0.94 + 0.06 * p.v1;
    return Rgb{channel(r * scale, 0, 0), channel(g * scale, 0, 0), channel(b * scale, 0, 0)};
  };
  switch (kind) {
    case NameKind::kKernel:
      return shade(230, 159, 0);  // orange
    case NameKind::kJit:
      return shade(0, 158, 115);  // bluish green
    case NameKind::kInlined:
      return shade(204, 121, 167);  // reddish purple
    case NameKind::kLibrary:
      return shade(86, 180, 233);  // sky blue
    case NameKind::kScript:
      return shade(0, 114, 178);  // blue
    case NameKind::kUnresolved:
      return shade(196, 196, 196);
    case NameKind::kUser:
      break;
    default:
      return shade(213, 94, 0);  // vermillion
  }
  return shade(240, 228, 66);  // yellow
}

/// Returns the colour in a palette whose colours show the kind of code.
Rgb meaning_color(Palette palette, NameKind kind, Position p) {
  return palette == Palette::kColorblind ? colorblind_color(kind, p) : kind_color(kind, p);
}

bool has_meaning(Palette palette) {
  return palette == Palette::kKind || palette == Palette::kColorblind;
}

constexpr std::pair<NameKind, std::string_view> kMeanings[] = {
    {NameKind::kUser, "program"},    {NameKind::kInlined, "inlined"},
    {NameKind::kLibrary, "library"}, {NameKind::kScript, "script"},
    {NameKind::kJit, "JIT"},         {NameKind::kKernel, "kernel"},
    {NameKind::kWait, "waiting"},    {NameKind::kUnresolved, "unresolved"},
};
constexpr std::pair<Palette, std::string_view> kHeats[] = {
    {Palette::kWarm, "on CPU"},
    {Palette::kCold, "waiting"},
};

/// Returns the kind that a palette distinguishes: colour-blind readers could not tell more apart.
NameKind kind_in(Palette palette, std::string_view name) {
  const NameKind kind = kind_of_name(name);
  return palette == Palette::kColorblind && is_wait(kind) ? NameKind::kWait : kind;
}

/// Does the palette have a colour for what the frame waited for?
bool shows_wait(Palette palette, std::string_view name) {
  const NameKind kind = kind_of_name(name);
  return (palette == Palette::kKind || palette == Palette::kHotCold) && is_wait(kind) &&
         kind != NameKind::kWait;
}

/// Returns the text in `table` for `key`.
template <typename Table, typename Key>
std::string_view text_of(const Table& table, Key key) {
  return std::ranges::find(table, key, [](const auto& entry) { return entry.first; })->second;
}

}  // namespace

std::optional<Palette> find_palette(std::string_view name) {
  const auto* const found =
      std::ranges::find(kPalettes, name, [](const PaletteName& p) { return p.name; });
  return found == std::end(kPalettes) ? std::nullopt : std::optional(found->palette);
}

std::string palette_names() {
  std::string names;
  for (const PaletteName& p : kPalettes)
    names.append(names.empty() ? "" : ", ").append(p.name);
  return names;
}

std::optional<Rgb> separator_color(std::string_view name) {
  if (name == "--")
    return Rgb{160, 160, 160};
  if (name == "-")
    return Rgb{200, 200, 200};
  return std::nullopt;
}

Rgb difference_color(double delta, double largest, Rgb same) {
  constexpr double kSteps = 210;  // between white and the deepest colour
  const double left = largest > 0 ? kSteps * (largest - std::abs(delta)) / largest : kSteps;
  const std::uint8_t pale = channel(left, 0, 0);
  if (delta > 0)
    return {255, pale, pale};
  if (delta < 0)
    return {pale, pale, 255};
  return same;
}

Rgb frame_color(Palette palette, Shade shade, std::string_view name, std::uint64_t seed) {
  if (const auto color = separator_color(name))
    return *color;
  const Position position = position_of(shade, name, seed);
  if (has_meaning(palette) || shows_wait(palette, name))
    return meaning_color(palette, kind_in(palette, name), position);
  return plain_color(hue_of_name(palette, name), position);
}

Palette palette_for(Palette palette, std::string_view name) {
  const bool keeps_meaning = has_meaning(palette) || palette == Palette::kHotCold;
  return !keeps_meaning && kind_of_name(name) == NameKind::kUnresolved ? Palette::kKind : palette;
}

bool wants_white_text(Rgb fill) {
  // Relative luminance is that of WCAG 2.1.  At the threshold both have a contrast of 4.58.
  const auto linear = [](std::uint8_t channel) {
    const double v = channel / 255.0;
    return v <= 0.03928 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(fill.r) + 0.7152 * linear(fill.g) + 0.0722 * linear(fill.b) < 0.179;
}

std::vector<LegendEntry> DifferenceLegend::entries() const {
  std::vector<LegendEntry> entries;
  if (grew_)
    entries.push_back({.color = difference_color(1, 2), .meaning = "grew"});
  if (shrank_)
    entries.push_back({.color = difference_color(-1, 2), .meaning = "shrank"});
  if (same_)
    entries.push_back({.color = difference_color(0, 2), .meaning = "as before"});
  return entries;
}

std::string_view meaning_of(Palette palette, std::string_view name) {
  if (name.empty() || separator_color(name))
    return {};
  if (shows_wait(palette, name))
    return text_of(kKindsOfWaits, kind_of_name(name));
  if (palette == Palette::kHotCold)
    return text_of(kHeats, hue_of_name(palette, name));
  return has_meaning(palette) ? text_of(kMeanings, kind_in(palette, name)) : "";
}

std::vector<LegendEntry> legend_of(Palette palette) {
  constexpr Position kMiddle{.v1 = 0.5, .v2 = 0.5, .v3 = 0.5};
  std::vector<LegendEntry> legend;
  if (palette == Palette::kHotCold)
    for (const auto& [heat, meaning] : kHeats)
      legend.push_back({.color = plain_color(heat, kMiddle), .meaning = std::string(meaning)});
  const auto add = [&](NameKind kind, std::string_view meaning) {
    legend.push_back(
        {.color = meaning_color(palette, kind, kMiddle), .meaning = std::string(meaning)});
  };
  if (has_meaning(palette))
    for (const auto& [kind, meaning] : kMeanings)
      add(kind, meaning);
  if (palette == Palette::kKind || palette == Palette::kHotCold)
    for (const auto& [kind, meaning] : kKindsOfWaits)
      if (kind != NameKind::kWait)
        add(kind, meaning);
  return legend;
}

Background default_background(Palette palette) {
  std::string_view name = "yellow";
  switch (palette) {
    case Palette::kMem:
      name = "green";
      break;
    case Palette::kIo:
    case Palette::kWakeup:
    case Palette::kChain:
      name = "blue";
      break;
    case Palette::kHot:
    case Palette::kJava:
    case Palette::kJs:
    case Palette::kPerl:
    case Palette::kBlack:
      break;
    default:
      name = "grey";
  }
  return *find_background(name);
}

std::optional<Background> find_background(std::string_view name) {
  if (name == "yellow")
    return Background{{0xee, 0xee, 0xee}, {0xee, 0xee, 0xb0}};
  if (name == "blue")
    return Background{{0xee, 0xee, 0xee}, {0xe0, 0xe0, 0xff}};
  if (name == "green")
    return Background{{0xee, 0xf2, 0xee}, {0xe0, 0xff, 0xe0}};
  if (name == "grey" || name == "gray")
    return Background{{0xf8, 0xf8, 0xf8}, {0xe8, 0xe8, 0xe8}};
  if (name.size() != 7 || name[0] != '#')
    return std::nullopt;
  const auto value = parse_number<std::uint32_t>(name.substr(1), 16);
  if (!value)
    return std::nullopt;
  const Rgb flat{static_cast<std::uint8_t>(*value >> 16U), static_cast<std::uint8_t>(*value >> 8U),
                 static_cast<std::uint8_t>(*value)};
  return Background{flat, flat};
}

}  // namespace pe::painting
