// SPDX-License-Identifier: MIT
#include "flamesvg/perl_names.h"

namespace pe::flamesvg {
namespace {

using cli::Takes;

constexpr cli::PerlOption kOptions[] = {
    {.name = "title", .takes = Takes::kText},
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
    {.name = "bgcolors", .takes = Takes::kText},
    {.name = "hash"},
    {.name = "random"},
    {.name = "cp"},
    {.name = "reverse"},
    {.name = "inverted"},
    {.name = "flamechart"},
    {.name = "negate"},
    {.name = "total", .takes = Takes::kText},
    {.name = "factor", .takes = Takes::kNumber},
    {.name = "nameattr", .takes = Takes::kText},
    {.name = "notes", .takes = Takes::kText},
    {.name = "encoding", .takes = Takes::kText},
    {.name = "help", .takes = Takes::kUsage},
};

constexpr std::string_view kCompat[] = {"--compat"};

constexpr cli::PerlName kNames[] = {
    {.name = "flamegraph.pl", .extra_args = kCompat, .options = kOptions},
};

}  // namespace

constinit const std::span<const cli::PerlName> kPerlNames = kNames;

}  // namespace pe::flamesvg
