// SPDX-License-Identifier: MIT
#include "flamediff/perl.h"

namespace pe::flamediff {
namespace {

constexpr PerlOption kOptions[] = {
    {.name = "h", .takes = Takes::kUsage},
    {.name = "n", .as = "normalize"},
    {.name = "s", .as = "strip-hex"},
};

constexpr std::string_view kFolded[] = {"--folded", "--compat"};

constexpr PerlName kNames[] = {
    {.name = "difffolded.pl",
     .extra_args = kFolded,
     .options = kOptions,
     .grammar = PerlGrammar::kLetters,
     .usage_status = 2},
};

}  // namespace

constinit const std::span<const PerlName> kPerlNames = kNames;

}  // namespace pe::flamediff
