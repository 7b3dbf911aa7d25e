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

/// The colours are paler than those of the plain palettes, because eight kinds are side by side.
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
    case NameKind::kWait:
      return {channel(122, 24, p.v1), channel(128, 24, p.v1), channel(214, 24, p.v1)};
    case NameKind::kUnresolved:
      return {channel(182, 26, p.v1), channel(182, 26, p.v1), channel(184, 26, p.v1)};
    case NameKind::kUser:
      break;
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
    case NameKind::kWait:
      return shade(213, 94, 0);  // vermillion
    case NameKind::kUnresolved:
      return shade(196, 196, 196);
    case NameKind::kUser:
      break;
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
  if (has_meaning(palette))
    return meaning_color(palette, kind_of_name(name), position);
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
  if (palette == Palette::kHotCold)
    return text_of(kHeats, hue_of_name(palette, name));
  return has_meaning(palette) ? text_of(kMeanings, kind_of_name(name)) : "";
}

std::vector<LegendEntry> legend_of(Palette palette) {
  constexpr Position kMiddle{.v1 = 0.5, .v2 = 0.5, .v3 = 0.5};
  std::vector<LegendEntry> legend;
  if (palette == Palette::kHotCold)
    for (const auto& [heat, meaning] : kHeats)
      legend.push_back({.color = plain_color(heat, kMiddle), .meaning = std::string(meaning)});
  if (!has_meaning(palette))
    return legend;
  for (const auto& [kind, meaning] : kMeanings)
    legend.push_back(
        {.color = meaning_color(palette, kind, kMiddle), .meaning = std::string(meaning)});
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

bool has_kind_mark(std::string_view name) {
  constexpr std::string_view kMarks = "kijlst";
  return without_mark(name).size() < name.size() &&
         kMarks.find(name[name.size() - 2]) != std::string_view::npos;
}

std::string_view without_mark(std::string_view name) {
  constexpr std::size_t kMarkSize = 4;  // _[k]
  if (name.size() < kMarkSize || name[name.size() - 4] != '_' || name[name.size() - 3] != '[' ||
      name.back() != ']')
    return name;
  constexpr std::string_view kMarks = "kijlstwo";
  if (kMarks.find(name[name.size() - 2]) == std::string_view::npos)
    return name;
  return name.substr(0, name.size() - kMarkSize);
}

bool is_tail_call(std::string_view name) {
  return name.ends_with("_[t]") && without_mark(name).size() < name.size();
}

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

bool is_unresolved(std::string_view name) {
  if (name.empty())  // the root of all stacks is not code
    return true;
  if (name.starts_with('[') && name.ends_with(']'))
    return true;
  if (!is_hex(name.substr(name.size() - 1)))  // most names, so the search below is rare
    return false;
  // "0x7f12", "libfoo.so+0x7f12"
  if (const auto x = name.rfind("0x"); x != name.npos)
    return (x == 0 || name[x - 1] == '+') && is_hex(name.substr(x + 2));
  // An address as perf script prints it.  Shorter ones may be words ("add", "face").
  constexpr std::size_t kAddressDigits = 8;
  return name.size() >= kAddressDigits && is_hex(name);
}

bool is_java_class(std::string_view name) {
  if (name.starts_with('L'))
    name.remove_prefix(1);
  constexpr std::string_view kPackages[] = {"java/", "javax/", "jdk/", "net/",
                                            "org/",  "com/",   "io/",  "sun/"};
  return std::ranges::any_of(kPackages, [&](auto package) { return name.starts_with(package); });
}

Palette java_hue(std::string_view name) {
  if (name.ends_with("_[j]"))
    return Palette::kGreen;
  if (name.ends_with("_[i]"))
    return Palette::kAqua;
  if (is_java_class(name) || contains(name, ":::"))
    return Palette::kGreen;
  if (contains(name, "::"))
    return Palette::kYellow;
  return name.ends_with("_[k]") ? Palette::kOrange : Palette::kRed;
}

Palette js_hue(std::string_view name) {
  if (name.ends_with("_[j]"))
    return contains(name, "/") ? Palette::kGreen : Palette::kAqua;
  if (contains(name, "::"))
    return Palette::kYellow;
  if (const auto slash = name.find('/');
      slash != std::string_view::npos && contains(name.substr(slash + 1), ".js"))
    return Palette::kGreen;
  if (contains(name, ":"))
    return Palette::kAqua;
  if (name == " ")
    return Palette::kGreen;
  return contains(name, "_[k]") ? Palette::kOrange : Palette::kRed;
}

Palette perl_hue(std::string_view name) {
  if (contains(name, "::"))
    return Palette::kYellow;
  if (contains(name, "Perl") || contains(name, ".pl"))
    return Palette::kGreen;
  return name.ends_with("_[k]") ? Palette::kOrange : Palette::kRed;
}

}  // namespace

NameKind kind_of_name(std::string_view name) {
  const std::string_view shown = without_mark(name);
  if (shown.starts_with('[') && name.ends_with("]_[o]"))
    return NameKind::kWait;
  if (is_unresolved(shown))
    return NameKind::kUnresolved;
  if (shown.size() == name.size())
    return NameKind::kUser;
  switch (name[name.size() - 2]) {
    case 'k':
      return NameKind::kKernel;
    case 'j':
      return NameKind::kJit;
    case 'i':
      return NameKind::kInlined;
    case 'l':
      return NameKind::kLibrary;
    case 's':
      return NameKind::kScript;
    default:
      return NameKind::kUser;
  }
}

Palette hue_of_name(Palette palette, std::string_view name) {
  switch (palette) {
    case Palette::kJava:
      return java_hue(name);
    case Palette::kJs:
      return js_hue(name);
    case Palette::kPerl:
      return perl_hue(name);
    case Palette::kWakeup:
      return Palette::kAqua;
    case Palette::kChain:
      return contains(name, "_[w]") ? Palette::kAqua : Palette::kBlue;
    case Palette::kHotCold:
      return name.ends_with("_[o]") ? Palette::kCold : Palette::kWarm;
    default:
      return palette;
  }
}

}  // namespace pe::painting
