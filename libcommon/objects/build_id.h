// Finding NT_GNU_BUILD_ID among an image's notes.  Private to elf/.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "objects/image.h"

namespace pe::objects {

/// Where notes are: a PT_NOTE segment or a SHT_NOTE section.
struct NoteRange {
  std::uint64_t file_offset, bytes, alignment;
};

/// The first build id in `ranges`; empty if there is none.
std::vector<std::byte> find_build_id(const Image& image, std::span<const NoteRange> ranges);

}  // namespace pe::objects
