// Recognises a PHP interpreter by its file, and reads its functions.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "languages/common/binary.h"
#include "languages/common/code.h"
#include "languages/common/frame.h"
#include "languages/common/layout.h"
#include "languages/common/memory.h"
#include "objects/image.h"

namespace pe::languages {

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

}  // namespace pe::languages
