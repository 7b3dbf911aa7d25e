// Recognises a PHP interpreter by its file, and reads its functions.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "objects/image.h"
#include "runtimes/memory.h"
#include "runtimes/scripts/binary.h"
#include "runtimes/scripts/code.h"
#include "runtimes/scripts/frame.h"
#include "runtimes/scripts/layout.h"

namespace pe::runtimes {

/// Needs the svma of executor_globals, which builds without threads have, and of
/// executor_globals_offset, which the others have.  The version is as in php/layout.h.  See
/// Interpreter::complete.
bool complete_php(const objects::Image& image, std::span<const std::uint64_t> symbols,
                  ScriptBinary& binary);

/// See Interpreter::layout.
std::variant<ScriptLayout, std::string> layout_of_php(Memory& memory, const ScriptBinary& binary,
                                                      std::uint64_t bias);

/// Names are "function", "Class::method", "{closure}", "{main}", or the file's name for an included
/// file.  See Interpreter::read_code.
std::optional<ScriptCode> read_php_code(Memory& memory, const ScriptLayout& layout,
                                        const ScriptFrame& frame);

}  // namespace pe::runtimes
