// Converts a sample stream to a profile for export.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/input.h"
#include "stackfold/exports/profile.h"
#include "stackfold/options.h"
#include "stackfold/stream_stacks.h"

namespace pe::fold::exports {

/// Reads to the end and adds every sample of the requested events, by default of all.  With
/// `with_times`, also keeps each sample with its time.  Throws Error if the input is not a sample
/// stream.
StreamReport add_stream(Input& input, const Options& options, bool with_times, Profile& profile);

}  // namespace pe::fold::exports
