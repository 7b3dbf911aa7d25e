// SPDX-License-Identifier: MIT
#include "flamesvg/perl.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/characters.h"
#include "painting/page_options.h"
#include "painting/svg/colors.h"

namespace pe::flamesvg {
namespace {

constexpr PerlOption kOptions[] = {
    {.name = "title", .takes = Takes::kText, .empty_is_none = true},
    {.name = "subtitle", .takes = Takes::kText},
    {.name = "width", .takes = Takes::kInteger},
    {.name = "height", .takes = Takes::kInteger},
    {.name = "minwidth", .takes = Takes::kText},  // a number, or a percentage
    {.name = "fonttype", .takes = Takes::kText},
    {.name = "fontsize", .takes = Takes::kNumber},
    {.name = "fontwidth", .takes = Takes::kNumber},
    {.name = "countname", .takes = Takes::kText},
    {.name = "nametype", .takes = Takes::kText},
    {.name = "colors", .takes = Takes::kText},
    {.name = "bgcolors", .takes = Takes::kText, .empty_is_none = true},
    {.name = "hash"},
    {.name = "random"},
    {.name = "cp"},
    {.name = "reverse"},
    {.name = "inverted"},
    {.name = "flamechart"},
    {.name = "negate"},
    {.name = "total", .takes = Takes::kText, .empty_is_none = true},
    {.name = "factor", .takes = Takes::kNumber},
    {.name = "nameattr", .takes = Takes::kText},
    {.name = "notes", .takes = Takes::kText},
    {.name = "encoding", .takes = Takes::kText},
    {.name = "help", .takes = Takes::kUsage},
};

constexpr std::string_view kCompat[] = {"--compat"};

constexpr PerlName kNames[] = {
    {.name = "flamegraph.pl", .extra_args = kCompat, .options = kOptions},
};

/// Replaces character references by characters.  flamegraph.pl copies its texts into the file, so
/// the scripts that call it escape them.
void unescape_texts(painting::PageStyle& page) {
  constexpr std::pair<std::string_view, char> kReferences[] = {
      {"&lt;", '<'},   {"&gt;", '>'},    {"&quot;", '"'},
      {"&#39;", '\''}, {"&apos;", '\''}, {"&amp;", '&'},
  };
  for (std::string* text : {&page.title, &page.subtitle, &page.count_name})
    for (std::size_t at = text->find('&'); at != std::string::npos; at = text->find('&', at + 1))
      for (const auto& [reference, character] : kReferences)
        if (std::string_view(*text).substr(at).starts_with(reference)) {
          text->replace(at, reference.size(), 1, character);
          break;
        }
}

/// Returns the number that perl reads from a text: that at its start, or 0.
double number_at_start(const std::string& text) {
  const std::size_t digit = text.find_first_not_of(" \t");
  const bool is_decimal = digit != std::string::npos && !text.substr(digit).starts_with("0x") &&
                          (is_digit(text[digit]) || text[digit] == '.' || text[digit] == '+');
  const double number = is_decimal ? std::strtod(text.c_str(), nullptr) : 0;
  return std::isfinite(number) ? number : 0;
}

}  // namespace

constinit const std::span<const PerlName> kPerlNames = kNames;

void follow_perl(const CommandLine& line, Options& options) {
  options.is_perl = true;
  painting::PageStyle& page = options.page;
  page.geometry.subtitle_overlaps = true;
  if (!line.has("width"))
    page.is_auto_width = false;
  if (!line.has("height"))
    page.geometry.frame_height = 16;
  if (!line.has("fonttype"))
    page.font_family = painting::font_family_of("Verdana");
  if (!page.background)
    page.background = painting::default_background(options.palette);
  if (!line.has("bgcolors") && !line.has("dark"))
    page.theme = painting::Theme::kLight;
  if (const auto* total = line.text("total"))
    options.perl_total = number_at_start(*total);
  if (options.factor == 0)
    painting::refuse("factor", "not a number above 0", *line.text("factor"));
  unescape_texts(page);
  page.whole_name = page.count_name;
  page.cuts_title = false;
  page.labels_root = false;
}

std::string_view perl_shown_name(std::string_view name) {
  const bool is_unknown = name.ends_with("_[l]") || name.ends_with("_[o]");
  return is_unknown ? name : painting::without_mark(name);
}

}  // namespace pe::flamesvg
