// Reads sections with compressed content (SHF_COMPRESSED), as debug sections often have.
//
// Layout: Elf64_Chdr or Elf32_Chdr {type, size, alignment}, then a zlib or zstd stream that
// expands to exactly `size` bytes.  Source: gABI chapter 4, "Section Compression".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "objects/image.h"

namespace pe::objects {

bool is_compressed(const Section& section) noexcept;

/// Returns the uncompressed size that the section announces.  nullopt if the section has no
/// content, is not inside the file, or announces more than its compression can produce.
std::optional<std::uint64_t> uncompressed_bytes(const Image& image, const Section& section);

/// Returns the content, and uncompresses it if need be.  nullopt as above, and if the content
/// exceeds `limit_bytes`, is damaged, or has an unknown compression.
std::optional<std::vector<std::byte>> read_uncompressed(const Image& image, const Section& section,
                                                        std::uint64_t limit_bytes);

}  // namespace pe::objects
