// Converts the layout of an interpreter for the kernel's programs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "languages/common/layout.h"
#include "recording/bpf/layout.h"

namespace pe::recording {

/// `runtime` is the address of the interpreter's state, and `file` the number of its file
/// (ScriptReader::File).  Returns nullopt if the kernel's program cannot read frames of that
/// layout.
std::optional<unwind::ScriptLayout> kernel_layout(const languages::ScriptLayout& layout,
                                                  std::uint64_t runtime, std::uint64_t file);

}  // namespace pe::recording
