// Recognises threads that have run nothing yet, and those whose program is being replaced.  Their
// stacks cannot be walked, and nothing is missing from them.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "unwind/architecture.h"

namespace pe::unwind {

/// Copies code like CodeSource (address_space.h).
using CodeReader = std::function<std::size_t(std::uint64_t avma, std::span<std::byte> into)>;

/// Whether a thread is at its first instruction: of a new program, or of the child of clone(2),
/// which has another stack than its parent, and no return address on it.
bool is_at_start(const architecture::Registers& registers, const CodeReader& code);

/// Whether a thread is in a system call, by the registers that it had in its program.
bool is_in_system_call(const architecture::Registers& registers);

}  // namespace pe::unwind
