// What a program may ask of the profiler that it starts in itself, checked.
//
// Callers may have been compiled with an older or a newer header: the size that they state tells
// which of the fields there are.
// SPDX-License-Identifier: MIT
#pragma once

#include <stackpipe/sigprof.h>

#include <cstdint>
#include <optional>

#include "inprocess/sampler/layout.h"

namespace pe::inprocess {

struct Options {
  std::uint32_t hz = 99;  ///< no multiple of what programs do in steps
  Clock clock = Clock::kCpu;
  bool only_chosen_threads = false;
  std::uint32_t stack_bytes = 32 * 1024;  ///< at most a quarter of a ring
  std::uint32_t ring_bytes = 512 * 1024;  ///< of a thread; a power of two
  std::uint32_t stop_ms = 2000;
};

/// nullopt if a value is out of its range, or a field that we do not know is not 0.  `asked` may be
/// null.
std::optional<Options> check_options(const sp_sigprof_options* asked) noexcept;

/// Fills as much as the caller has room for, by its size; nothing if that is none of a version.
void give_counts(const sp_sigprof_counts& counts, sp_sigprof_counts& to) noexcept;

}  // namespace pe::inprocess
