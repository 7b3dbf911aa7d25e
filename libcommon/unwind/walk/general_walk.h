// Walks a stack with all registers and without a cache.  This is slow, but always enough.
// Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "unwind/address_space.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/walk_start.h"

namespace pe::unwind {

/// Gives the same guarantees as Walker::walk(), and the same result where that does not need this.
/// If `sps` is not empty, it receives each frame's stack pointer.  It is at least as long as `out`.
WalkResult walk_with_all_registers(AddressSpace& space, const WalkStart& start,
                                   const StackView& stack, std::span<Frame> out,
                                   std::span<std::uint64_t> sps = {});

/// Writes the first frame into `out`, and its stack pointer into `sps` as above.  Returns false if
/// there is nothing more to walk; `result` gives the reason.
bool begin_walk(const WalkStart& start, const StackView& stack, std::span<Frame> out,
                WalkResult& result, std::span<std::uint64_t> sps = {});

}  // namespace pe::unwind
