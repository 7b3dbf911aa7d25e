// SPDX-License-Identifier: MIT
#include "painting/svg/colors.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

using namespace pe::painting;

namespace pe::painting {
std::ostream& operator<<(std::ostream& out, Rgb c) {
  return out << +c.r << ',' << +c.g << ',' << +c.b;
}
}  // namespace pe::painting

namespace {

Rgb by_sum(Palette palette, std::string_view name) {
  return frame_color(palette, Shade::kBySum, name);
}

/// The relative luminance of WCAG 2.1.
double luminance(Rgb c) {
  const auto linear = [](std::uint8_t channel) {
    const double v = channel / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b);
}

/// The plain palette that `palette` uses for `name`.
std::string hue(Palette palette, std::string_view name) {
  switch (hue_of_name(palette, name)) {
    case Palette::kRed:
      return "red";
    case Palette::kGreen:
      return "green";
    case Palette::kAqua:
      return "aqua";
    case Palette::kYellow:
      return "yellow";
    case Palette::kOrange:
      return "orange";
    case Palette::kBlue:
      return "blue";
    default:
      return "?";
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(colors)

BOOST_AUTO_TEST_CASE(shades_follow_drand48_of_the_names_sum) {
  // The characters of "a" add up to 97; drand48 with this seed returns 0.638651976668374 first.
  BOOST_TEST(by_sum(Palette::kHot, "a") == (Rgb{236, 146, 35}));
  BOOST_TEST(by_sum(Palette::kMem, "a") == (Rgb{0, 221, 134}));
  BOOST_TEST(by_sum(Palette::kOrange, "a") == (Rgb{231, 131, 0}));
  BOOST_TEST(by_sum(Palette::kHot, "ab") == by_sum(Palette::kHot, "ba"));
}

BOOST_AUTO_TEST_CASE(hashed_shades_follow_the_first_and_last_characters) {
  const auto hashed = [](std::string_view name) {
    return frame_color(Palette::kHot, Shade::kByHash, name);
  };
  // Green depends on the first characters of the function, red and blue on the last characters of
  // the whole name, as in flamegraph.pl.
  BOOST_TEST(hashed("module`abcde").g == hashed("abcde").g);
  BOOST_TEST(hashed("abcXdef") == hashed("abcYdef"));
  // 'a': (97 mod 10)/9 = 7/9, weights 1 of 2: v1 = v2 = v3 = 1 - 7/18.
  BOOST_TEST(hashed("a") == (Rgb{235, 140, 33}));
}

BOOST_AUTO_TEST_CASE(shades_by_chance_depend_on_name_and_seed) {
  const auto by_chance = [](std::string_view name, std::uint64_t seed) {
    return frame_color(Palette::kHot, Shade::kByChance, name, seed);
  };
  BOOST_TEST(by_chance("a", 1) == by_chance("a", 1));
  BOOST_TEST(by_chance("a", 1) != by_chance("a", 2));
  BOOST_TEST(by_chance("a", 1) != by_chance("b", 1));
}

BOOST_AUTO_TEST_CASE(labels_are_easy_to_read_in_every_colour) {
  std::size_t colors = 0;
  const auto check = [&](Rgb fill, std::string_view what) {
    const double text = wants_white_text(fill) ? 1.05 : 0.05;  // luminance + 0.05
    const double ratio =
        std::max(text, luminance(fill) + 0.05) / std::min(text, luminance(fill) + 0.05);
    BOOST_TEST(ratio >= 4.5, fill << " of " << what);
    ++colors;
  };
  std::vector<std::string> names = {"",         "-",           "--",   "[unknown]",
                                    "0x7f0011", "lib.so+0x1f", "a::b", "a:::b",
                                    "org/x.y",  "x /a.js:7",   "a:b",  "Perl:x"};
  for (unsigned i = 0; i < 500; ++i)
    names.push_back("f" + std::to_string(i * i * 7919));
  for (const char* mark : {"", "_[k]", "_[i]", "_[j]", "_[l]", "_[o]", "_[w]"})
    for (const std::string& name : names)
      for (unsigned palette = 0; palette <= static_cast<unsigned>(Palette::kCold); ++palette)
        for (const Shade shade : {Shade::kBySum, Shade::kByHash, Shade::kByChance})
          check(frame_color(static_cast<Palette>(palette), shade, name + mark, 1),
                name + mark + " in palette " + std::to_string(palette));
  for (int change = -1000; change <= 1000; ++change)
    check(difference_color(change, 1000), "a difference");
  BOOST_TEST(colors > 200'000U);
}

BOOST_AUTO_TEST_CASE(warm_is_paler_than_hot) {
  const auto range = [](Rgb c) { return std::max({c.r, c.g, c.b}) - std::min({c.r, c.g, c.b}); };
  for (const char* name : {"main", "read", "a::b"})
    BOOST_TEST(range(by_sum(Palette::kWarm, name)) < range(by_sum(Palette::kHot, name)));
}

BOOST_AUTO_TEST_CASE(unresolved_names_are_grey_unless_colours_have_meanings) {
  for (const char* name : {"[unknown]", "0x7f0011", "lib.so+0x1f"}) {
    BOOST_TEST((palette_for(Palette::kMem, name) == Palette::kKind), name);
    BOOST_TEST((palette_for(Palette::kHotCold, name) == Palette::kHotCold), name);
    BOOST_TEST((palette_for(Palette::kColorblind, name) == Palette::kColorblind), name);
  }
  BOOST_TEST((palette_for(Palette::kMem, "main") == Palette::kMem));
}

BOOST_AUTO_TEST_CASE(a_colour_means_what_the_legend_says) {
  for (const Palette palette : {Palette::kKind, Palette::kColorblind, Palette::kHotCold})
    for (const char* name :
         {"f", "f_[k]", "f_[i]", "f_[j]", "f_[l]", "f_[s]", "f_[o]", "[unknown]"}) {
      const auto legend = legend_of(palette);
      const auto has_meaning = [&](const auto& entry) {
        return entry.meaning == meaning_of(palette, name);
      };
      BOOST_TEST(std::ranges::any_of(legend, has_meaning), name);
    }
  BOOST_TEST(meaning_of(Palette::kKind, "f_[k]") == "kernel");
  BOOST_TEST(meaning_of(Palette::kKind, "f_[s]") == "script");
  BOOST_TEST(meaning_of(Palette::kHotCold, "f_[o]") == "waiting");
  for (const char* name : {"", "--"})
    BOOST_TEST(meaning_of(Palette::kKind, name).empty());
  BOOST_TEST(meaning_of(Palette::kWarm, "f_[k]").empty());
}

BOOST_AUTO_TEST_CASE(the_legend_of_differences_lists_what_occurs) {
  pe::painting::DifferenceLegend legend;
  BOOST_TEST(legend.entries().empty());
  legend.add(-0.5);
  BOOST_REQUIRE(legend.entries().size() == 1U);
  BOOST_TEST(legend.entries()[0].meaning == "shrank");
  legend.add(0);
  legend.add(2);
  BOOST_TEST(legend.entries().size() == 3U);
}

BOOST_AUTO_TEST_CASE(differences_go_from_white_to_red_and_blue) {
  using pe::painting::difference_color;
  BOOST_TEST(difference_color(0, 8) == pe::painting::kUnchanged);
  BOOST_TEST(difference_color(0, 0, pe::painting::kWhite) == (Rgb{255, 255, 255}));
  BOOST_TEST(difference_color(8, 8) == (Rgb{255, 0, 0}));
  BOOST_TEST(difference_color(-4, 8) == (Rgb{105, 105, 255}));
  BOOST_TEST(difference_color(-85, 175) == (Rgb{108, 108, 255}));  // 210 * 90 / 175, exactly
}

BOOST_AUTO_TEST_CASE(the_colorblind_palette_tells_kinds_apart_by_brightness_too) {
  const auto brightness = [](std::string_view name) {
    const Rgb c = frame_color(Palette::kColorblind, Shade::kBySum, name);
    return 0.21 * c.r + 0.72 * c.g + 0.07 * c.b;
  };
  BOOST_TEST(brightness("main") > brightness("main_[l]") + 30);
  BOOST_TEST(brightness("main_[k]") > brightness("main_[j]") + 20);
  BOOST_TEST(pe::painting::legend_of(Palette::kColorblind).size() == 8U);
}

BOOST_AUTO_TEST_CASE(separators_are_grey_in_every_palette) {
  BOOST_TEST(by_sum(Palette::kKind, "--") == (Rgb{160, 160, 160}));
  BOOST_TEST(by_sum(Palette::kHot, "-") == (Rgb{200, 200, 200}));
}

BOOST_AUTO_TEST_CASE(java_looks_at_marks_then_at_classes) {
  const auto java = [](std::string_view name) { return hue(Palette::kJava, name); };
  BOOST_TEST(java("x_[j]") == "green");
  BOOST_TEST(java("x_[i]") == "aqua");
  BOOST_TEST(java("Ljava/lang/String:.length") == "green");
  BOOST_TEST(java("org/x.y") == "green");
  BOOST_TEST(java("a:::b") == "green");
  BOOST_TEST(java("a::b") == "yellow");
  BOOST_TEST(java("read_[k]") == "orange");
  BOOST_TEST(java("read") == "red");
}

BOOST_AUTO_TEST_CASE(js_perl_wakeup_and_chain_have_rules_of_their_own) {
  BOOST_TEST(hue(Palette::kJs, "x /a.js_[j]") == "green");
  BOOST_TEST(hue(Palette::kJs, "x_[j]") == "aqua");
  BOOST_TEST(hue(Palette::kJs, "v8::x") == "yellow");
  BOOST_TEST(hue(Palette::kJs, "x /a.js:7") == "green");
  BOOST_TEST(hue(Palette::kJs, "a:b") == "aqua");
  BOOST_TEST(hue(Palette::kJs, " ") == "green");
  BOOST_TEST(hue(Palette::kJs, "x_[k]") == "orange");
  BOOST_TEST(hue(Palette::kPerl, "Perl:x") == "green");
  BOOST_TEST(hue(Palette::kPerl, "main") == "red");
  BOOST_TEST(hue(Palette::kWakeup, "x") == "aqua");
  BOOST_TEST(hue(Palette::kChain, "x_[w]") == "aqua");
  BOOST_TEST(hue(Palette::kChain, "x") == "blue");
}

BOOST_AUTO_TEST_CASE(kind_tells_the_code_by_mark_and_shape) {
  for (const char* name : {"[unknown]", "[libc.so.6]", "[unknown]_[k]", "libfoo.so+0x1f",
                           "0x7f0011", "7f00112233aa", ""})
    BOOST_TEST((kind_of_name(name) == NameKind::kUnresolved), name);
  for (const char* name : {"main", "operator[]", "face", "add", "x+0xyz", "f_[z]", "to0x1"})
    BOOST_TEST((kind_of_name(name) == NameKind::kUser), name);
  BOOST_TEST((kind_of_name("[waiting for a CPU]_[o]") == NameKind::kReady));
  BOOST_TEST((kind_of_name("[lock]_[o]") == NameKind::kLock));
  BOOST_TEST((kind_of_name("[still waiting]_[o]") == NameKind::kWait));
  BOOST_TEST((kind_of_name("do_sys_open_[k]") == NameKind::kKernel));
  BOOST_TEST((kind_of_name("Foo.bar_[j]") == NameKind::kJit));
  BOOST_TEST((kind_of_name("std::min_[i]") == NameKind::kInlined));
  BOOST_TEST((kind_of_name("memcpy_[l]") == NameKind::kLibrary));
}

BOOST_AUTO_TEST_CASE(what_waits_is_blue) {
  const auto waiting = frame_color(Palette::kHotCold, Shade::kBySum, "read_[o]");
  const auto running = frame_color(Palette::kHotCold, Shade::kBySum, "read");
  BOOST_TEST(waiting.b > waiting.r);
  BOOST_TEST(running.r > running.b);
  BOOST_TEST(meaning_of(Palette::kHotCold, "read_[o]") == "waiting");
}

BOOST_AUTO_TEST_CASE(what_a_thread_waited_for_has_a_colour_where_kinds_have_one) {
  for (const auto& [kind, text] : pe::painting::kKindsOfWaits) {
    const std::string name = "[" + std::string(text) + "]_[o]";
    BOOST_TEST((kind_of_name(name) == kind));
    BOOST_TEST((by_sum(Palette::kKind, name) != by_sum(Palette::kKind, "[unknown]")), name);
    const bool is_other = kind == NameKind::kWait;
    BOOST_TEST(meaning_of(Palette::kHotCold, name) == (is_other ? "waiting" : text));
    BOOST_TEST(meaning_of(Palette::kColorblind, name) == "waiting");
  }
  BOOST_TEST((by_sum(Palette::kHotCold, "[lock]_[o]") != by_sum(Palette::kHotCold, "[I/O]_[o]")));
}

BOOST_AUTO_TEST_CASE(marks_are_not_shown) {
  for (const char* name : {"f_[k]", "f_[j]", "f_[i]", "f_[w]", "f_[l]", "f_[o]", "f_[t]"})
    BOOST_TEST(without_mark(name) == "f");
  for (const char* name : {"f", "f_[x]", "f[k]", "_[k", ""})
    BOOST_TEST(without_mark(name) == name);
  BOOST_TEST(pe::painting::is_tail_call("f_[t]"));
  BOOST_TEST(!pe::painting::is_tail_call("f_[l]"));
}

BOOST_AUTO_TEST_CASE(palettes_and_backgrounds_are_known_by_name) {
  BOOST_TEST((find_palette("kind") == Palette::kKind));
  BOOST_TEST(!find_palette("Hot"));
  BOOST_TEST(palette_names().starts_with("hot, mem, io"));
  BOOST_TEST((find_background("#0a0B0c") == Background{{10, 11, 12}, {10, 11, 12}}));
  for (const char* name : {"#12345", "#1234567", "#12345g", "#+12345", "white", ""})
    BOOST_TEST(!find_background(name), name);
  BOOST_TEST((default_background(Palette::kMem) == find_background("green")));
  BOOST_TEST((default_background(Palette::kChain) == find_background("blue")));
  BOOST_TEST((default_background(Palette::kRed) == find_background("grey")));
  BOOST_TEST((default_background(Palette::kJava) == find_background("yellow")));
}

BOOST_AUTO_TEST_SUITE_END()
