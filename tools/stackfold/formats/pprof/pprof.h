// Reads profiles in the format of pprof, gzip-compressed or not, from Go and many other runtimes
// and profilers.
//
// String numbers refer to a table that may follow them, so the reader holds the profile in memory,
// up to a limit.
//
// Source: proto/profile.proto of github.com/google/pprof.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::pprof {

/// Treats all gzip data as a profile: stackfold reads no other compressed input.
bool looks_like(std::string_view head);

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// The size limit of an unpacked profile; a larger one is reported as damaged.
inline constexpr std::size_t kMaxBytes = 512UL << 20U;

}  // namespace pe::fold::pprof
