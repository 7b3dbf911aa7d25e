// Makes call frame information from a Go program's own table of functions.
//
// Go programs have no .eh_frame, and without debug information no .debug_frame.  But each has
// .gopclntab, which the runtime uses to walk its stacks.  The table gives each function's code, and
// whether the function is the first of a stack.  It also gives the distance of the stack pointer
// below the frame at each instruction.  go_frames() writes these facts as a section of CFI, so that
// everything else works as for C.  Go's .debug_frame does not describe where a goroutine's stack
// ends, nor where the runtime changes stacks.  objects/go_functions.h reads the table, but for:
//
//     pairs       varints: change of the value (zigzag), bytes of code; until a change of 0
//
// Functions of the runtime that load the stack pointer continue on another stack.  Their frame
// pointer is still that of the stack that they have left, so it leads to the caller.
//
// Source: Go's src/runtime/symtab.go and runtime2.go (pcHeader, _func, step), versions 1.18 and
// 1.20 of the layout.  Programs of older compilers have none of this.  All input is untrusted.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "objects/image.h"

namespace pe::unwind {

/// Returns a section of the format CfiFormat::kDebugFrame for a table.  `text_svma` is the start of
/// the code.  It is used if the table has none, as in programs that can be loaded anywhere.
/// Returns an empty section if the table is of another kind, or damaged.
/// `image` has them, and may refuse to go on; null: no limits.
std::vector<std::byte> go_frames(Bytes table, std::uint64_t text_svma,
                                 const objects::Image* image = nullptr);

/// Does the same for an image; empty if it is not a Go program.
std::vector<std::byte> go_frames(const objects::Image& image);

/// The limit for the section: a malicious table can name one function's pairs for all functions.
inline constexpr std::size_t kMaxGoFramesBytes = std::size_t{1} << 27;

}  // namespace pe::unwind
