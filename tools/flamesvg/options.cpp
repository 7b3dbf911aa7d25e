// SPDX-License-Identifier: MIT
#include "flamesvg/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <random>
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

void read_palette(const cli::CommandLine& line, Options& options) {
  const auto* text = line.text("colors") != nullptr ? line.text("colors") : line.text("color");
  if (text == nullptr)
    return;
  const auto palette = svg::find_palette(*text);
  if (!palette && line.has("compat")) {
    options.palette = svg::Palette::kBlack;
    return;
  }
  if (!palette)
    refuse("colors", "not one of " + svg::palette_names(), *text);
  options.palette = *palette;
}

void read_background(const cli::CommandLine& line, Options& options) {
  options.page.background = svg::default_background(options.palette);
  if (line.has("compat"))
    options.page.theme = svg::Theme::kLight;
  const auto* text = line.text("bgcolors");
  if (text == nullptr)
    return;
  const auto background = svg::find_background(*text);
  if (!background)
    refuse("bgcolors", "not one of yellow, blue, green, grey, #rrggbb", *text);
  options.page.background = *background;
  options.page.theme = svg::Theme::kLight;
}

void read_shade(const cli::CommandLine& line, Options& options) {
  if (line.has("hash"))
    options.shade = svg::Shade::kByHash;
  if (!line.has("random") && !line.has("seed"))
    return;
  options.shade = svg::Shade::kByChance;
  options.seed = std::random_device()();
  if (const auto* text = line.text("seed")) {
    const auto seed = parse_number<std::uint64_t>(*text);
    if (!seed)
      refuse("seed", "not a number", *text);
    options.seed = *seed;
  }
}

void read_colors(const cli::CommandLine& line, Options& options) {
  read_palette(line, options);
  read_background(line, options);
  if (line.has("dark"))
    options.page.theme = svg::Theme::kDark;
  read_shade(line, options);
  options.page.legend = svg::legend_of(options.palette);
  options.page.geometry.has_legend = !options.page.legend.empty();
  options.keeps_colors = line.has("cp");
  options.negate = line.has("negate");
}

std::string_view default_title(const cli::CommandLine& line) {
  if (line.has("flamechart"))
    return "Flame Chart";
  return line.has("inverted") ? "Icicle Graph" : "Flame Graph";
}

/// Only encodings that extend ASCII: the page is written in ASCII for all but UTF-8.
void read_encoding(const cli::CommandLine& line, std::string& encoding) {
  const auto* text = line.text("encoding");
  if (text == nullptr)
    return;
  std::string name = *text;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name == "UTF8")
    name = "UTF-8";
  constexpr std::string_view kBegins[] = {
      "UTF-8",  "US-ASCII", "ISO-8859-", "ISO_8859-", "WINDOWS-125", "CP125", "KOI8-",
      "LATIN1", "EUC-",     "GB2312",    "GBK",       "GB18030",     "BIG5",  "TIS-620",
  };
  const bool is_known =
      name.size() < 20 &&
      name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string::npos &&
      std::any_of(std::begin(kBegins), std::end(kBegins),
                  [&name](std::string_view begin) { return name.starts_with(begin); });
  if (!is_known)
    refuse("encoding", "not an encoding that is known to extend ASCII", *text);
  encoding = name;
}

void read_notes(const cli::CommandLine& line, std::string& notes) {
  read_text(line, "notes", notes);
  if (notes.find_first_of("<>") != std::string::npos)
    refuse("notes", "must not hold < or >", notes);
}

void read_page(const cli::CommandLine& line, svg::PageStyle& page) {
  svg::Geometry& geometry = page.geometry;
  geometry.inverted = line.has("inverted");
  page.title = default_title(line);
  read_text(line, "title", page.title);
  read_text(line, "subtitle", page.subtitle);
  geometry.has_subtitle = !page.subtitle.empty();
  geometry.subtitle_overlaps = line.has("compat");
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
  read_notes(line, page.notes);
  read_encoding(line, page.encoding);
}

std::optional<folded::Count> read_count(const cli::CommandLine& line, const char* option) {
  const auto* text = line.text(option);
  if (text == nullptr)
    return std::nullopt;
  const auto count = folded::parse_count(*text);
  if (!count)
    refuse(option, "not a count", *text);
  return count;
}

Order read_order(const cli::CommandLine& line) {
  const auto* text = line.text("sort");
  if (text != nullptr && *text != "name" && *text != "width")
    refuse("sort", "not one of name, width", *text);
  if (text != nullptr && line.has("flamechart"))
    throw UsageError("--sort: a flame chart keeps the order of its input");
  if (line.has("flamechart"))
    return Order::kInput;
  return text != nullptr && *text == "width" ? Order::kWidth : Order::kName;
}

void read_shape(const cli::CommandLine& line, Options& options) {
  options.is_perl = line.has("compat");
  options.order = read_order(line);
  options.reverse = line.has("reverse");
  options.total = read_count(line, "total");
  options.lost = read_count(line, "lost").value_or(folded::Count{});
  if (const auto* text = line.text("max-depth")) {
    options.max_depth = parse_number<std::uint32_t>(*text);
    if (!options.max_depth || *options.max_depth == 0)
      refuse("max-depth", "not a number of frames", *text);
  }
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
      ("max-depth", text("N"), "fold deeper frames into one")                                     //
      ("fonttype", text("FONT"), "font (default Verdana)")                                        //
      ("fontsize", text("PX"), "font size (default 12)")                                          //
      ("fontwidth", text("N"), "mean glyph width in font sizes (default 0.59)")                   //
      ("countname", text("NAME"), "what is counted (default samples)")                            //
      ("nametype", text("TEXT"), "what stands before a name (default Function:)")                 //
      ("colors", text("PALETTE"), ("one of " + svg::palette_names() + " (default hot)").c_str())  //
      ("color", text("PALETTE"), "the same")                                                      //
      ("bgcolors", text("COLOR"), "background: yellow, blue, green, grey or #rrggbb")             //
      ("dark", "dark page (default: as the reader prefers)")                                      //
      ("embed", text("SIZE"), "bytes for the whole tree, or all, none (default 3M)")              //
      ("hash", "similar names get similar shades")                                                //
      ("random", "shades by chance")                                                              //
      ("seed", text("N"), "shades by chance, the same for the same N")                            //
      ("cp", "keep the colours of functions in the file palette.map")                             //
      ("negate", "swap the colours and signs of differences")                                     //
      ("inverted", "root at the top: an icicle graph")                                            //
      ("reverse", "merge stacks from the leaf, not from the root")                                //
      ("flamechart", "keep the order of the input: x is time")                                    //
      ("sort", text("HOW"), "order frames by name (default) or width")                            //
      ("total", text("COUNT"), "what the whole width stands for (default the sum)")               //
      ("factor", text("N"), "multiply shown counts by N (default 1)")                             //
      ("lost", text("COUNT"), "draw a frame for samples that were lost")                          //
      ("nameattr", text("FILE"), "titles, links, classes of functions")                           //
      ("notes", text("TEXT"), "a comment in the file")                                            //
      ("encoding", text("NAME"), "encoding that the file declares")                               //
      ("compat", "draw exactly as flamegraph.pl");
}

Options read_options(const cli::CommandLine& line) {
  Options options;
  read_page(line, options.page);
  read_colors(line, options);
  read_shape(line, options);
  options.min_width = read_min_width(line);
  read_number(line, "factor", kFactors, options.factor);
  read_text(line, "nameattr", options.name_attributes);
  if (!options.name_attributes.empty())  // links need elements of their own
    options.embed_limit = 0;
  else if (const auto* text = line.text("embed"))
    options.embed_limit = read_embed_limit(*text);
  return options;
}

}  // namespace pe::flamesvg
