// Memory for what is asked for before the real allocator is found: dlsym(3) itself asks.
//
// A few kilobytes that are never given back.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace pe::malloctrace {

/// Zeros, aligned to 16 or to `alignment` if that is more; nullptr if there is no room left.
void* boot_allocate(std::size_t bytes, std::size_t alignment = 16) noexcept;
/// Whether a block is one of these.
bool is_boot_block(const void* block) noexcept;
/// Their number, and one by number: for those who must tell them apart in another way.
std::size_t boot_block_count() noexcept;
const void* boot_block(std::size_t number) noexcept;
/// How many bytes were asked for.
std::size_t boot_block_bytes(const void* block) noexcept;

}  // namespace pe::malloctrace
