// A sample stream as a profile to be exported.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/io/input.h"
#include "stackfold/exports/profile.h"
#include "stackfold/options.h"
#include "stackfold/stream_stacks.h"

namespace pe::fold::exports {

/// Reads to the end and adds every sample of the events that were asked for, by default of all.
/// Each sample is kept with its time if `with_times`.  Throws Error if the input is no sample
/// stream.
StreamReport add_stream(Input& input, const Options& options, bool with_times, Profile& profile);

}  // namespace pe::fold::exports
