// The call tree that the profiler of Visual Studio exports as CSV, CallTreeSummary.csv:
//
//   Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,
//       Avg Elapsed Inclusive Time,Avg Elapsed Exclusive Time,Module Name,      (one line)
//   0,"app.exe",0,100.00,0.00,0.00,0.00,"",
//   1,"App.Main()","2,893,824",54.37,4.21,0.04,0.00,"app.exe",
//
// UTF-8 with a byte order mark.  Numbers above 999 are in groups, in quotes, with the separator of
// the user's language.  A profile by samples has "Exclusive Samples" instead of calls and times.
// Source: VSPerfReport /Summary:CallTree and reports as people published them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::visual_studio {

/// Is its first line the header?
bool looks_like(std::string_view head);

/// The types are samples, or time (exclusive, in hundredths of a percent) and calls.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// "2,893,824", "2.893.824" or "471"; nullopt if it is no whole number.
std::optional<std::uint64_t> parse_grouped(std::string_view text);

/// "54.37" or "54,37" in hundredths; nullopt if there are not two decimals.
std::optional<std::uint64_t> parse_hundredths(std::string_view text);

}  // namespace pe::fold::visual_studio
