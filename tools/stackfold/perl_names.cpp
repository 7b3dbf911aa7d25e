// SPDX-License-Identifier: MIT
#include "stackfold/perl_names.h"

namespace pe::fold {
namespace {

constexpr PerlOption kPerfOptions[] = {
    {.name = "pid"},     {.name = "tid"},
    {.name = "kernel"},  {.name = "jit"},
    {.name = "all"},     {.name = "addrs"},
    {.name = "inline"},  {.name = "context"},
    {.name = "srcline"}, {.name = "event-filter", .takes = Takes::kText},
};

constexpr std::string_view kPerfScript[] = {"--compat", "--from=perf-script"};
constexpr std::string_view kDtrace[] = {"--from=dtrace"};
constexpr std::string_view kBpftrace[] = {"--from=bpftrace"};
constexpr std::string_view kGdb[] = {"--from=gdb"};
constexpr std::string_view kRecursive[] = {"--from=folded", "--recursive"};

constexpr PerlName kNames[] = {
    {.name = "stackcollapse-perf.pl", .extra_args = kPerfScript, .options = kPerfOptions},
    {.name = "stackcollapse.pl", .extra_args = kDtrace, .options = {}},
    {.name = "stackcollapse-bpftrace.pl", .extra_args = kBpftrace, .options = {}},
    {.name = "stackcollapse-gdb.pl", .extra_args = kGdb, .options = {}},
    {.name = "stackcollapse-recursive.pl", .extra_args = kRecursive, .options = {}},
};

}  // namespace

constinit const std::span<const PerlName> kPerlNames = kNames;

}  // namespace pe::fold
