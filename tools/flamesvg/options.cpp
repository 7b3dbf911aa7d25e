// SPDX-License-Identifier: MIT
#include "flamesvg/options.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/parse_decimal.h"
#include "base/parse_number.h"

namespace pe::flamesvg {
namespace {

namespace po = boost::program_options;

struct Range {
  double low, high;
};

constexpr Range kWidths{.low = 100, .high = 1'000'000};
constexpr Range kFrameHeights{.low = 2, .high = 1000};
constexpr Range kFontSizes{.low = 1, .high = 1000};
constexpr Range kFontWidths{.low = 0.01, .high = 10};
constexpr Range kFactors{.low = 0, .high = 1e18};

[[noreturn]] void refuse(const char* option, std::string_view expected, const std::string& text) {
  throw UsageError(fmt::format("--{}: {}: '{}'", option, expected, text));
}

/// Replaces `value` if the option was given.
void read_number(const cli::CommandLine& line, const char* option, Range range, double& value) {
  const auto* text = line.text(option);
  if (text == nullptr)
    return;
  const auto number = parse_decimal(*text);
  if (!number || *number < range.low || *number > range.high)
    refuse(option, fmt::format("not a number from {} to {}", range.low, range.high), *text);
  value = *number;
}

void read_text(const cli::CommandLine& line, const char* option, std::string& value) {
  if (const auto* text = line.text(option))
    value = *text;
}

MinWidth read_min_width(const cli::CommandLine& line) {
  MinWidth min_width;
  const auto* text = line.text("minwidth");
  if (text == nullptr)
    return min_width;
  std::string_view number = *text;
  min_width.is_percent = number.ends_with('%');
  if (min_width.is_percent)
    number.remove_suffix(1);
  const auto value = parse_decimal(number);
  if (!value || (min_width.is_percent && *value > 100))
    refuse("minwidth", "neither pixels nor a percentage", *text);
  min_width.value = *value;
  return min_width;
}

/// "3M", "500K", a number of bytes, "all" or "none".
std::uint64_t read_embed_limit(const std::string& text) {
  if (text == "none")
    return 0;
  if (text == "all")
    return std::numeric_limits<std::uint64_t>::max();
  std::string_view digits = text;
  unsigned shift = 0;
  if (!digits.empty() && (digits.back() == 'K' || digits.back() == 'M')) {
    shift = digits.back() == 'K' ? 10 : 20;
    digits.remove_suffix(1);
  }
  const auto number = parse_number<std::uint64_t>(digits);
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() >> shift)
    refuse("embed", "not a size such as 3M, all or none", text);
  return *number << shift;
}

void read_colors(const cli::CommandLine& line, Options& options) {
  if (const auto* text = line.text("colors")) {
    const auto palette = svg::find_palette(*text);
    if (!palette)
      refuse("colors", "not one of " + svg::palette_names(), *text);
    options.palette = *palette;
  }
  options.page.legend = svg::legend_of(options.palette);
  options.page.geometry.has_legend = !options.page.legend.empty();
  options.page.background = svg::default_background(options.palette);
  if (const auto* text = line.text("bgcolors")) {
    const auto background = svg::find_background(*text);
    if (!background)
      refuse("bgcolors", "not one of yellow, blue, green, grey, #rrggbb", *text);
    options.page.background = *background;
    options.page.theme = svg::Theme::kLight;
  }
  if (line.has("dark"))
    options.page.theme = svg::Theme::kDark;
  if (line.has("hash"))
    options.shade = svg::Shade::kByHash;
}

void read_page(const cli::CommandLine& line, svg::PageStyle& page) {
  svg::Geometry& geometry = page.geometry;
  geometry.inverted = line.has("inverted");
  page.title = geometry.inverted ? "Icicle Graph" : "Flame Graph";
  read_text(line, "title", page.title);
  read_text(line, "subtitle", page.subtitle);
  geometry.has_subtitle = !page.subtitle.empty();
  const auto* width = line.text("width");
  page.is_auto_width = width != nullptr && *width == "auto";
  if (!page.is_auto_width)
    read_number(line, "width", kWidths, geometry.width);
  read_number(line, "height", kFrameHeights, geometry.frame_height);
  read_text(line, "fonttype", page.font_type);
  read_number(line, "fontsize", kFontSizes, geometry.font_size);
  read_number(line, "fontwidth", kFontWidths, geometry.font_width);
  read_text(line, "countname", page.count_name);
  read_text(line, "nametype", page.name_type);
}

}  // namespace

void add_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()                                                                           //
      ("title", text("TEXT"), "title (default Flame Graph)")                                      //
      ("subtitle", text("TEXT"), "second title line (default none)")                              //
      ("width", text("PX|auto"), "width, or that of the window (default 1200)")                   //
      ("height", text("PX"), "height of a frame (default 16)")                                    //
      ("minwidth", text("PX|N%"), "leave out narrower frames (default 0.1)")                      //
      ("fonttype", text("FONT"), "font (default Verdana)")                                        //
      ("fontsize", text("PX"), "font size (default 12)")                                          //
      ("fontwidth", text("N"), "mean glyph width in font sizes (default 0.59)")                   //
      ("countname", text("NAME"), "what is counted (default samples)")                            //
      ("nametype", text("TEXT"), "what stands before a name (default Function:)")                 //
      ("colors", text("PALETTE"), ("one of " + svg::palette_names() + " (default hot)").c_str())  //
      ("bgcolors", text("COLOR"), "background: yellow, blue, green, grey or #rrggbb")             //
      ("dark", "dark page (default: as the reader prefers)")                                      //
      ("embed", text("SIZE"), "bytes for the whole tree, or all, none (default 3M)")              //
      ("hash", "similar names get similar shades")                                                //
      ("inverted", "root at the top: an icicle graph")                                            //
      ("reverse", "merge stacks from the leaf, not from the root")                                //
      ("total", text("COUNT"), "what the whole width stands for (default the sum)")               //
      ("factor", text("N"), "multiply shown counts by N (default 1)");
}

Options read_options(const cli::CommandLine& line) {
  Options options;
  read_page(line, options.page);
  read_colors(line, options);
  options.min_width = read_min_width(line);
  options.reverse = line.has("reverse");
  if (const auto* text = line.text("total")) {
    options.total = folded::parse_count(*text);
    if (!options.total)
      refuse("total", "not a count", *text);
  }
  read_number(line, "factor", kFactors, options.factor);
  if (const auto* text = line.text("embed"))
    options.embed_limit = read_embed_limit(*text);
  return options;
}

}  // namespace pe::flamesvg
