// Call frame information made from a Go program's own table of functions.
//
// Go programs have no .eh_frame, and without debug information no .debug_frame.  But each has
// .gopclntab, which the runtime walks its stacks by: for each function its code, how far the stack
// pointer is below the frame at each instruction, and whether it is the first of a stack.  All of
// that is written down here as a section of CFI, so that everything else is as with C.  Go's
// .debug_frame knows neither where a goroutine's stack ends nor where the runtime changes stacks.
//
//     header      magic, pointer size, number of functions, start of the code, offsets
//     functions   {offset of the code, offset of the description} each, sorted; the end of the code
//     description name, offset of the pairs of the stack pointer, flags
//     pairs       varints: change of the value (zigzag), bytes of code; until a change of 0
//
// Functions of the runtime that load the stack pointer continue on another stack.  Their frame
// pointer is still that of the stack that they have left, so that is where the caller is.
//
// Source: Go's src/runtime/symtab.go and runtime2.go (pcHeader, _func, step), versions 1.18
// and 1.20 of the layout.  Programs of older compilers have none of this.  Everything may be
// hostile.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "objects/image.h"

namespace pe::unwind {

/// A section of the format CfiFormat::kDebugFrame for a table; `text_svma` is where the code
/// begins if the table does not say, as of programs that can be loaded anywhere.  Empty if it is
/// no such table, or a damaged one.
std::vector<std::byte> go_frames(Bytes table, std::uint64_t text_svma);

/// The same of an image; empty if it is not a Go program.
std::vector<std::byte> go_frames(const objects::Image& image);

/// A hostile table can name one function's pairs for all functions; nothing is added beyond this.
inline constexpr std::size_t kMaxGoFramesBytes = std::size_t{1} << 27;

}  // namespace pe::unwind
