// Walks a stack with all registers and without a cache.  This is slow, but always enough.
// Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "unwind/address_space.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/thread_history.h"
#include "unwind/walk/walk_start.h"

namespace pe::unwind {

/// Gives the same guarantees as Walker::walk(), and the same result where that does not need this.
/// If `scratch` is not null, it receives each frame's stack pointer and frame pointer.  It has room
/// for as many frames as `out`.
WalkResult walk_with_all_registers(AddressSpace& space, const WalkStart& start,
                                   const StackView& stack, std::span<Frame> out,
                                   HistoryScratch* scratch = nullptr);

/// Writes the first frame into `out`, and into `scratch` as above.  Returns false if there is
/// nothing more to walk; `result` gives the reason.
bool begin_walk(const WalkStart& start, const StackView& stack, std::span<Frame> out,
                WalkResult& result, HistoryScratch* scratch = nullptr);

}  // namespace pe::unwind
