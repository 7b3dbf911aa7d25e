// Memory for requests that come before the real allocator is found: dlsym(3) itself allocates.
//
// There are 64 KiB, which are never given back.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace pe::malloctrace {

/// Returns zeros, aligned to 16 or to `alignment` if that is more; nullptr if there is no room
/// left.
void* boot_allocate(std::size_t bytes, std::size_t alignment = 16) noexcept;
/// Whether a block is in this memory.
bool is_boot_block(const void* block) noexcept;
/// The number of these blocks, and one block by its number, for code that must recognise them in
/// another way.
std::size_t boot_block_count() noexcept;
const void* boot_block(std::size_t number) noexcept;
/// Returns how many bytes were asked for.
std::size_t boot_block_bytes(const void* block) noexcept;

}  // namespace pe::malloctrace
