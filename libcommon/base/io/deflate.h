// Compresses and expands whole buffers in the zlib format (RFC 1950), which browsers inflate and
// ELF files contain.  It can also compress to the gzip format.  gzip.h reads data in pieces.
//
// It uses libdeflate, not zlib.  Both were measured on the embedded call tree of 100,000 stacks
// (1.2 MB).  At its lowest level, libdeflate takes 12 ms for 809 KB, and zlib 33 ms for 835 KB.  At
// level 6, libdeflate takes 27 ms for 797 KB, and zlib 96 ms for 810 KB.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_reader.h"

namespace pe {

/// `level` is from 1, fastest, to 12, smallest.  Throws Error if memory runs out.
std::string deflate(std::string_view bytes, int level);

/// Like deflate(), but in the gzip format (RFC 1952), without a time stamp.
std::string gzip(std::string_view bytes, int level);

/// Fills `out` from the zlib stream at the start of `bytes`.  Returns false if the data is damaged
/// or its expanded size is not that of `out`.  Throws Error if memory runs out.
bool inflate(Bytes bytes, std::span<std::byte> out);

/// Extends `so_far`, the CRC-32 of gzip (RFC 1952, 8) of the data before `bytes`, by `bytes`; start
/// with 0.
std::uint32_t crc32(std::uint32_t so_far, Bytes bytes) noexcept;

}  // namespace pe
