// Reads the stack of the calling thread in its interpreter, in a signal handler.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "inprocess/sampler/core/ring_writer.h"
#include "inprocess/sampler/layout.h"

namespace pe::inprocess {

/// Writes the stack to the ring, before its sample; nothing if the thread runs no script.
/// `is_first`: it is the process's first thread.  `known` is that of walk_script(); initially 0.
/// `sample_bytes` of the ring stay free for the sample.  Takes no lock, and allocates nothing;
/// errno may change.
void take_script(const ScriptOfProcess& script, bool is_first, std::uint64_t& known,
                 std::uint64_t sample_bytes, RingWriter& ring) noexcept;

}  // namespace pe::inprocess
