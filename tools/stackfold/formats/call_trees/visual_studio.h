// Reads the call tree that Visual Studio's profiler exports as CSV, CallTreeSummary.csv:
//
//   Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,
//       Avg Elapsed Inclusive Time,Avg Elapsed Exclusive Time,Module Name,      (one line)
//   0,"app.exe",0,100.00,0.00,0.00,0.00,"",
//   1,"App.Main()","2,893,824",54.37,4.21,0.04,0.00,"app.exe",
//
// The file is UTF-8 with a byte order mark.  Numbers above 999 are quoted and have the group
// separator of the user's language.  A sampled profile has "Exclusive Samples" instead of calls and
// times.
// Source: VSPerfReport /Summary:CallTree and published reports.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::visual_studio {

/// Is the first line the header?
bool looks_like(std::string_view head);

/// The types are either samples, or time (exclusive, in hundredths of a percent) and calls.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// Parses "2,893,824", "2.893.824" or "471"; nullopt if it is not a whole number.
std::optional<std::uint64_t> parse_grouped(std::string_view text);

/// Converts "54.37" or "54,37" to hundredths; nullopt unless it has two decimals.
std::optional<std::uint64_t> parse_hundredths(std::string_view text);

}  // namespace pe::fold::visual_studio
