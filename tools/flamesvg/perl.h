// The script that flamesvg replaces: its options, and the quirks that --compat repeats.
//
// Its frames are in perl_frames.h.  Two of its rules are in the library: folded lines
// (folded/perl_line.h), and differences of the embedded tree (painting::Differences::kPerl).
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/cli/getopt_long.h"
#include "flamesvg/options.h"

namespace pe::flamesvg {

extern const std::span<const PerlName> kPerlNames;

/// Applies --compat to the options of `line`.  Throws UsageError.
void follow_perl(const CommandLine& line, Options& options);

/// Returns the name as flamegraph.pl shows it: it does not know the marks of libraries and waiting.
std::string_view perl_shown_name(std::string_view name);

}  // namespace pe::flamesvg
