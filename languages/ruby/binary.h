// Recognises CRuby by its file.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/byte_reader.h"
#include "languages/common/binary.h"
#include "languages/common/layout.h"
#include "languages/common/memory.h"
#include "objects/image.h"

namespace pe::languages {

/// Needs the svma of ruby_api_version, ruby_current_vm_ptr and ruby_vm_at_exit; one of the last two
/// suffices.  The interpreter's state is ruby_current_vm_ptr, and the version is ruby_version() of
/// layout.h.  See Interpreter::complete.
bool complete_ruby(const objects::Image& image, std::span<const std::uint64_t> symbols,
                   ScriptBinary& binary);

/// See Interpreter::layout.
std::variant<ScriptLayout, std::string> layout_of_ruby(Memory& memory, const ScriptBinary& binary,
                                                       std::uint64_t bias);

/// Returns the svma from which code that is loaded at `svma` first loads a pointer; nullopt if it
/// loads none.  ruby_vm_at_exit() so loads ruby_current_vm_ptr, which often has no symbol.
std::optional<std::uint64_t> first_loaded_pointer(Bytes code, std::uint64_t svma);

}  // namespace pe::languages
