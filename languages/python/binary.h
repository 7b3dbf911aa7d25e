// Recognises a CPython interpreter by its file.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "languages/common/binary.h"
#include "languages/common/layout.h"
#include "languages/common/memory.h"
#include "objects/image.h"

namespace pe::languages {

/// Needs the svma of _PyRuntime and of Py_Version, which Python has since 3.11.  The version is
/// Py_Version's value; 0 before 3.11.  See Interpreter::complete.
bool complete_python(const objects::Image& image, std::span<const std::uint64_t> symbols,
                     ScriptBinary& binary);

/// See Interpreter::layout.
std::variant<ScriptLayout, std::string> layout_of_python(Memory& memory, const ScriptBinary& binary,
                                                         std::uint64_t bias);

}  // namespace pe::languages
