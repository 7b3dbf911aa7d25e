// The debug sections of an image, alone in a small ELF image of our own for libdw.
//
// libdw trusts a file in ways that a hostile one can use: it maps it, reads strings to their
// NUL wherever that is (elfutils 0.188 does, found by fuzzing), follows links to other files and
// uncompresses whatever is announced.  Here every section is read and uncompressed with a limit,
// what links elsewhere is left out, and zeros end it all.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "elf/image.h"

namespace pe::dwarf {

/// Zeros that follow the image in memory, so that no string or number reaches over the end.
inline constexpr std::size_t kPaddingBytes = 64;

/// An ELF image and kPaddingBytes of zeros; empty if there is no .debug_info, or if the sections
/// exceed `limit_bytes` together.  A section that cannot be read is left out.
std::vector<std::byte> make_debug_image(const elf::Image& image, std::uint64_t limit_bytes);

}  // namespace pe::dwarf
