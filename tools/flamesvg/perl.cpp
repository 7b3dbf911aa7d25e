// SPDX-License-Identifier: MIT
#include "flamesvg/perl.h"

#include <utility>

#include "picture/page_options.h"
#include "picture/svg/colors.h"

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
void unescape_texts(picture::PageStyle& page) {
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

}  // namespace

constinit const std::span<const PerlName> kPerlNames = kNames;

void follow_perl(const CommandLine& line, Options& options) {
  options.is_perl = true;
  picture::PageStyle& page = options.page;
  page.geometry.subtitle_overlaps = true;
  if (!line.has("width"))
    page.is_auto_width = false;
  if (!line.has("height"))
    page.geometry.frame_height = 16;
  if (!line.has("fonttype"))
    page.font_family = picture::font_family_of("Verdana");
  if (!page.background)
    page.background = picture::default_background(options.palette);
  if (!line.has("bgcolors") && !line.has("dark"))
    page.theme = picture::Theme::kLight;
  if (options.factor == 0)
    picture::refuse("factor", "not a number above 0", *line.text("factor"));
  unescape_texts(page);
  page.whole_name = page.count_name;
  page.cuts_title = false;
}

std::string_view perl_shown_name(std::string_view name) {
  const bool is_unknown = name.ends_with("_[l]") || name.ends_with("_[o]");
  return is_unknown ? name : picture::without_mark(name);
}

std::optional<folded::FoldedLine> perl_reversed(const folded::FoldedLine& line,
                                                std::string& rewritten) {
  rewritten.clear();
  append_folded_line(rewritten, line);
  rewritten.pop_back();  // the newline
  return folded::parse_folded_line(rewritten, folded::Columns::kPerl);
}

}  // namespace pe::flamesvg
