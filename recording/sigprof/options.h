// Checks the options of a program for the profiler that it starts in itself.
//
// Callers may have been compiled with an older or a newer header.  Their structure's size shows
// which fields exist.
// SPDX-License-Identifier: MIT
#pragma once

#include <stackpipe/sigprof.h>

#include <cstdint>
#include <optional>

#include "recording/signal/layout.h"

namespace pe::inprocess {

struct Options : SampleSettings {
  bool only_chosen_threads = false;
  std::uint32_t stop_ms = 2000;
};

/// Returns nullopt if a value is out of its range, or if a field unknown to us is not 0.  `asked`
/// may be null.
std::optional<Options> check_options(const sp_sigprof_options* asked) noexcept;

/// Fills the fields that the caller's structure has, by its size; nothing if no version has that
/// size.
void copy_counts(const sp_sigprof_counts& counts, sp_sigprof_counts& to) noexcept;

}  // namespace pe::inprocess
