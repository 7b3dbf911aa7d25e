// Finds the start of the running kernel's text, which distinguishes the addresses of two boots.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::stream {

/// Returns the address of _text in /proc/kallsyms; 0 if it is hidden (kptr_restrict) or missing.
std::uint64_t kernel_start();

}  // namespace pe::stream
