// Records a sample of the calling thread in a signal handler: a finished PERF_RECORD_SAMPLE with
// registers and a copy of the stack.
// Counts the samples that do not fit in the ring.
// SPDX-License-Identifier: MIT
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "recording/inprocess/runtime/stack_bounds.h"
#include "recording/signal/core/ring_writer.h"
#include "recording/signal/layout.h"

namespace pe::inprocess {

struct SampledThread {
  Thread& thread;  ///< the calling one
  RingWriter& ring;
  const SampleSettings& settings;
  std::uint32_t pid;
  StackBounds stack;          ///< zeros if unknown
  bool can_copy;              ///< see can_copy_own_memory()
  bool lacks_script = false;  ///< the stack of an interpreter could not be copied
};

/// Records the interrupted state of the thread as a sample of `weight` periods of the timer.  The
/// kernel copies the stack, because the program may unmap or protect any part of it.  If a filter
/// of system calls forbids that, only the thread's own stack is copied, by loads.  Takes no lock,
/// and allocates nothing; errno may change.
void take_sample(const SampledThread& sampled, std::uint32_t weight,
                 const ucontext_t& context) noexcept;

}  // namespace pe::inprocess
