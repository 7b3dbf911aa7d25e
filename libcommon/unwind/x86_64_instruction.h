// The lengths of x86-64 instructions, and where they continue: enough to find each instruction of a
// function that leaves it.
//
// Zydis decodes them.  Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume
// 2; AMD64 Architecture Programmer's Manual, volume 3.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace pe::unwind {

struct Instruction {
  enum class Flow : std::uint8_t {
    kNext,          ///< the next instruction, or after a call
    kReturn,        ///< a near return
    kJump,          ///< to `target`
    kBranch,        ///< there or the next instruction
    kIndirectJump,  ///< to an address that is computed
  };
  std::size_t bytes = 0;
  Flow flow = Flow::kNext;
  std::int64_t target = 0;  ///< bytes from the next instruction
};

/// Returns the instruction at the start of `code`; nullopt if there is none, or it is cut off.
std::optional<Instruction> decode_x86_64(Bytes code) noexcept;

}  // namespace pe::unwind
