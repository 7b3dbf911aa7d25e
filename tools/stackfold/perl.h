// The Perl scripts that stackfold replaces: their options, and the quirks that --compat repeats.
//
// The quirks of a sample's first line are in formats/perf_script/header.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/getopt_long.h"
#include "stackfold/formats/perf_script/frame.h"

namespace pe::fold {

extern const std::span<const PerlName> kPerlNames;

/// Like frames_of().  Each "->" divides a function.  The text ends at the first "(" that does not
/// open "(anonymous namespace)", but is whole if Go's ".(*T)." occurs.
std::vector<std::string> perl_frames_of(const PerfFrame& frame, const FrameRules& rules);

/// Every name in brackets is the kernel, even "[vdso]", unless it contains "unknown".
bool is_kernel_to_perl(std::string_view module);

/// Returns how many source lines stackcollapse-perf.pl reads after a frame line of `functions`
/// functions.  It reads one for each function.  If the module is unknown, it stops at the first
/// unknown function.
std::size_t perl_source_lines(const PerfFrame& frame, std::size_t functions);

/// Like source_suffix(), but keeps "??:0", the module and the discriminator.
std::string perl_source_suffix(std::string_view line);

}  // namespace pe::fold
