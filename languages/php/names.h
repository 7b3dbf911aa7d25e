// Reads a function of PHP: its name, its file and its line.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "languages/common/frame.h"
#include "languages/common/interpreter.h"
#include "languages/common/memory.h"
#include "languages/registry.h"

namespace pe::languages {

/// Names are "function", "Class::method", "{closure}", "{main}", or the file's name for an included
/// file.  See Interpreter::read_code.
std::optional<ScriptCode> read_php_code(Memory& memory, const ScriptLayout& layout,
                                        const ScriptFrame& frame);

}  // namespace pe::languages
