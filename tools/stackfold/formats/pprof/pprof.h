// Profiles in the format of pprof, gzip-compressed or not: Go's, and those of many other
// runtimes and profilers.
//
// Source: proto/profile.proto of github.com/google/pprof.  Numbers of strings refer to a
// table that may stand behind them, so the profile is held in memory, up to a limit.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::pprof {

/// gzip data counts as a profile: there is no other input that comes compressed.
bool looks_like(std::string_view head);

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// How large a profile may be when it is unpacked; beyond that it is damage.
inline constexpr std::size_t kMaxBytes = 512UL << 20U;

}  // namespace pe::fold::pprof
