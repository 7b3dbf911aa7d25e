// Walks a stack with all registers and without a cache: slow, and never in need of more.  Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "unwind/address_space.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/walk_start.h"

namespace pe::unwind {

/// The same promises as Walker::walk(), and the same result where that does not need this.  `sps`,
/// unless it is empty, is at least as long as `out` and is given each frame's stack pointer.
WalkResult walk_with_all_registers(AddressSpace& space, const WalkStart& start,
                                   const StackView& stack, std::span<Frame> out,
                                   std::span<std::uint64_t> sps = {});

/// Writes the first frame into `out`, and into `sps` as above; false if there is nothing more to
/// walk, `result` says why.
bool begin_walk(const WalkStart& start, const StackView& stack, std::span<Frame> out,
                WalkResult& result, std::span<std::uint64_t> sps = {});

}  // namespace pe::unwind
