// Where the running kernel's text begins: tells one boot's addresses from another's.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::stream {

/// The address of _text in /proc/kallsyms; 0 where it is hidden (kptr_restrict) or missing.
std::uint64_t kernel_start();

}  // namespace pe::stream
