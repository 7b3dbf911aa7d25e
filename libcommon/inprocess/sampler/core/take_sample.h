// A sample of the calling thread, inside of a signal handler: registers, a copy of the stack, and
// what is counted when the ring has no room.
// SPDX-License-Identifier: MIT
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "inprocess/sampler/core/stack_bounds.h"
#include "inprocess/sampler/layout.h"

namespace pe::inprocess {

struct SampledThread {
  Thread& thread;  ///< the calling one
  std::byte* ring;
  std::uint32_t ring_bytes;   ///< a power of two
  std::uint32_t stack_bytes;  ///< most that is copied
  StackBounds stack;          ///< as far as they are known
};

/// What a signal has interrupted, as a record that stands for `weight` periods of the timer.  Takes
/// no lock, allocates nothing; errno may change.
void take_sample(const SampledThread& sampled, std::uint32_t weight,
                 const ucontext_t& context) noexcept;

}  // namespace pe::inprocess
