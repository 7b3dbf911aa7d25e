// Sections whose content is compressed (SHF_COMPRESSED), as debug sections often are.
//
// Layout: Elf64_Chdr or Elf32_Chdr {type, size, alignment}, then a zlib or zstd stream that
// makes exactly `size` bytes.  Source: gABI chapter 4, "Section Compression".
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "objects/image.h"

namespace pe::objects {

bool is_compressed(const Section& section) noexcept;

/// How many bytes the content takes once uncompressed, as the section says; nullopt if it has
/// none, does not lie in the file, or claims more than its compression can make.
std::optional<std::uint64_t> uncompressed_bytes(const Image& image, const Section& section);

/// The content, uncompressed if need be.  nullopt as above, if it exceeds `limit_bytes`, is
/// damaged, or compressed in another way.
std::optional<std::vector<std::byte>> read_uncompressed(const Image& image, const Section& section,
                                                        std::uint64_t limit_bytes);

}  // namespace pe::objects
