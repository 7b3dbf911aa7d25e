// Reads a code object of CPython: the function's name, its file and its lines.
//
// Sources: CPython, Include/cpython/code.h and unicodeobject.h; Objects/locations.md for the table
// of lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/byte_reader.h"
#include "languages/common/frame.h"
#include "languages/common/interpreter.h"
#include "languages/common/memory.h"
#include "languages/python/layout.h"
#include "languages/python/walk.h"
#include "languages/registry.h"

namespace pe::languages {

/// Reads a str object as UTF-8, at most `most` characters of it.  nullopt if it is unreadable, or
/// not compact, as only old extension modules make them.  U+FFFD replaces what UTF-8 cannot hold.
std::optional<std::string> read_python_text(Memory& memory, const PythonLayout& layout,
                                            std::uint64_t text, std::size_t most);

/// Decodes co_linetable; stops at the first byte that does not belong there.  The places are bytes
/// from the code object on, and the first `instructions` of them have no line.
LineTable decode_lines(Bytes table, std::uint32_t first_line, std::uint32_t instructions);
/// Reads the table of lines of a code object; an empty one if it is unreadable.
LineTable read_line_table(Memory& memory, const PythonLayout& layout, const CodeFields& code);

/// See Interpreter::read_code.
std::optional<ScriptCode> read_python_code(Memory& memory, const ScriptLayout& layout,
                                           const ScriptFrame& frame);

}  // namespace pe::languages
