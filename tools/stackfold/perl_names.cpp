// SPDX-License-Identifier: MIT
#include "stackfold/perl_names.h"

namespace pe::fold {
namespace {

using cli::Takes;

constexpr cli::PerlOption kPerfOptions[] = {
    {.name = "pid"},     {.name = "tid"},
    {.name = "kernel"},  {.name = "jit"},
    {.name = "all"},     {.name = "addrs"},
    {.name = "inline"},  {.name = "context"},
    {.name = "srcline"}, {.name = "event-filter", .takes = Takes::kText},
};

constexpr std::string_view kPerfScript[] = {"--compat", "--from=perf-script"};

constexpr cli::PerlName kNames[] = {
    {.name = "stackcollapse-perf.pl", .extra_args = kPerfScript, .options = kPerfOptions},
};

}  // namespace

constinit const std::span<const cli::PerlName> kPerlNames = kNames;

}  // namespace pe::fold
