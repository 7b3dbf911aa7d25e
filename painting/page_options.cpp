// SPDX-License-Identifier: MIT
#include "painting/page_options.h"

#include <fmt/format.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <limits>

#include "base/cli/command_line.h"
#include "base/error.h"
#include "base/parse_number.h"

namespace pe::painting {
namespace {

namespace po = boost::program_options;

constexpr NumberRange kWidths{.low = 2 * Geometry::kSideMargin + 1, .high = 1'000'000};
constexpr NumberRange kFrameHeights{.low = 2, .high = 1000};
constexpr NumberRange kFontSizes{.low = 1, .high = 1000};
constexpr NumberRange kFontWidths{.low = 0.01, .high = 10};

MinWidth read_min_width(const CommandLine& line) {
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

/// Reads "3M", "500K", a number of bytes, "all" or "none".
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

void read_looks(const CommandLine& line, PageStyle& page) {
  if (const auto* text = line.text("bgcolors")) {
    const auto chosen = find_background(*text);
    if (!chosen)
      refuse("bgcolors", "not one of yellow, blue, green, grey, #rrggbb", *text);
    page.background = chosen;
    page.theme = Theme::kLight;
  }
  if (line.has("dark"))
    page.theme = Theme::kDark;
}

/// Accepts only encodings that extend ASCII: the page is ASCII in all encodings but UTF-8.
void read_encoding(const CommandLine& line, std::string& encoding) {
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
  const auto is_begin = [&name](std::string_view text) { return name.starts_with(text); };
  const bool is_known =
      name.size() < 20 &&
      name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string::npos &&
      std::any_of(std::begin(kBegins), std::end(kBegins), is_begin);
  if (!is_known)
    refuse("encoding", "not an encoding that is known to extend ASCII", *text);
  encoding = name;
}

bool is_unit_of_time(std::string_view name) {
  return name == "ns" || name == "us" || name == "ms" || name == "s";
}

void read_notes(const CommandLine& line, std::string& notes) {
  read_text(line, "notes", notes);
  if (notes.find_first_of("<>") != std::string::npos)
    refuse("notes", "must not contain < or >", notes);
}

void read_page(const CommandLine& line, std::string_view title, PageStyle& page) {
  Geometry& geometry = page.geometry;
  geometry.inverted = line.has("icicle");
  page.is_html = line.has("html");
  page.title = title;
  read_text(line, "title", page.title);
  read_text(line, "subtitle", page.subtitle);
  geometry.has_subtitle = !page.subtitle.empty();
  const auto* width = line.text("width");
  page.is_auto_width = width == nullptr || *width == "auto";
  if (!page.is_auto_width)
    read_number(line, "width", kWidths, geometry.width);
  read_number(line, "height", kFrameHeights, geometry.frame_height);
  if (const auto* font = line.text("fonttype"))
    page.font_family = font_family_of(*font);
  read_number(line, "fontsize", kFontSizes, geometry.font_size);
  read_number(line, "fontwidth", kFontWidths, geometry.font_width);
  std::string count_name = page.count_name;
  read_text(line, "countname", count_name);
  set_count_name(page, std::move(count_name));
  read_text(line, "nametype", page.name_type);
  read_notes(line, page.notes);
  read_encoding(line, page.encoding);
}

}  // namespace

void set_count_name(PageStyle& page, std::string name) {
  page.whole_name = is_unit_of_time(name) ? "time" : name;
  page.count_name = std::move(name);
}

void refuse(const char* option, std::string_view expected, const std::string& text) {
  throw UsageError(fmt::format("--{}: {}: '{}'", option, expected, text));
}

void read_number(const CommandLine& line, const char* option, NumberRange range, double& value) {
  const auto* text = line.text(option);
  if (text == nullptr)
    return;
  const auto number = parse_decimal(*text);
  if (!number || *number < range.low || *number > range.high)
    refuse(option, fmt::format("not a number from {} to {}", range.low, range.high), *text);
  value = *number;
}

void read_text(const CommandLine& line, const char* option, std::string& value) {
  if (const auto* text = line.text(option))
    value = *text;
}

void add_page_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()                                                       //
      ("title", text("TEXT"), "title of the flame graph")                     //
      ("subtitle", text("TEXT"), "second line of the title (default: none)")  //
      ("width", one_of("PX|auto", "auto"),
       "width in pixels, or auto: the window's width (default)")                     //
      ("height", text("PX"), "height of a frame in pixels (default 18)")             //
      ("minwidth", text("PX|N%"), "leave out narrower frames (default 0.1 pixels)")  //
      ("fonttype", text("FONT"), "font family (default system-ui)")                  //
      ("fontsize", text("PX"), "font size in pixels (default 12)")                   //
      ("countname", text("NAME"), "unit of the counts (default samples)")            //
      ("bgcolors", one_of("COLOR", "yellow, blue, green, grey"),
       "background: yellow, blue, green, grey or #rrggbb (default white)")  //
      ("dark", "draw a dark page (default: as the reader prefers)")         //
      ("embed", one_of("SIZE", "all, none"),
       "maximum size of the call tree in the file: 3M (default), all or none")  //
      ("html", "write an HTML document, for hosts that refuse scripts in SVG")  //
      // "inverted" is the name of flamegraph.pl.
      ("icicle,inverted", "draw the root at the top");
}

void add_compatible_page_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()                                                                    //
      ("fontwidth", text("N"), "mean width of a letter in font sizes (default 0.59)")      //
      ("nametype", text("TEXT"), "text before a name in the details (default Function:)")  //
      ("notes", text("TEXT"), "put a comment into the file")                               //
      ("encoding", text("NAME"), "encoding that the file declares (default UTF-8)");
}

std::string font_family_of(std::string_view font) {
  return fmt::format("{}, \"DejaVu Sans\", sans-serif", font);
}

PageOptions read_page_options(const CommandLine& line, std::string_view title) {
  PageOptions options;
  read_page(line, title, options.page);
  read_looks(line, options.page);
  options.min_width = read_min_width(line);
  if (const auto* text = line.text("embed"))
    options.embed_limit = read_embed_limit(*text);
  return options;
}

}  // namespace pe::painting
