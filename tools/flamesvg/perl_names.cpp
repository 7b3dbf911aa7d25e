// SPDX-License-Identifier: MIT
#include "flamesvg/perl_names.h"

#include <string>
#include <utility>

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

}  // namespace

constinit const std::span<const PerlName> kPerlNames = kNames;

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

}  // namespace pe::flamesvg
