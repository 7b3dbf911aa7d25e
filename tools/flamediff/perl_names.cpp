// SPDX-License-Identifier: MIT
#include "flamediff/perl_names.h"

namespace pe::flamediff {
namespace {

constexpr cli::PerlOption kOptions[] = {
    {.name = "h", .takes = cli::Takes::kUsage},
    {.name = "n", .as = "normalize"},
    {.name = "s", .as = "strip-hex"},
};

constexpr std::string_view kFolded[] = {"--folded", "--compat"};

constexpr cli::PerlName kNames[] = {
    {.name = "difffolded.pl",
     .extra_args = kFolded,
     .options = kOptions,
     .grammar = cli::PerlGrammar::kLetters,
     .usage_status = 2},
};

}  // namespace

constinit const std::span<const cli::PerlName> kPerlNames = kNames;

}  // namespace pe::flamediff
