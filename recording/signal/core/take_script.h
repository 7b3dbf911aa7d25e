// Reads the stack of the calling thread in its interpreter, in a signal handler.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "recording/signal/core/ring_writer.h"
#include "recording/signal/layout.h"

namespace pe::inprocess {

inline constexpr std::size_t kScriptPages = 16, kScriptPageBytes = 4096;
/// Copies of the pages that a walk has read.
using ScriptRoom = std::array<std::array<std::byte, kScriptPageBytes>, kScriptPages>;

struct ScriptReader {
  ScriptRoom* room;      ///< nullptr if the kernel does not copy for us
  std::uint64_t& known;  ///< that of walk_script(); initially 0
  bool is_first_thread;  ///< of the process
};

/// Writes the stack to the ring, before its sample; nothing if the thread runs no script.
/// `sample_bytes` of the ring stay free for the sample.  Takes no lock, and allocates nothing;
/// errno may change.  False if it could not read the stack of a thread that may run a script.
bool take_script(const ScriptOfProcess& script, const ScriptReader& reader,
                 std::uint64_t sample_bytes, RingWriter& ring) noexcept;

}  // namespace pe::inprocess
