// Finds NT_GNU_BUILD_ID among an image's notes.  Private to objects/.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "objects/image.h"

namespace pe::objects {

/// A place of notes: a PT_NOTE segment or a SHT_NOTE section.
struct NoteRange {
  std::uint64_t file_offset, bytes, alignment;
};

/// Returns the first build id in `ranges`; empty if there is none.
std::vector<std::byte> find_build_id(const Image& image, std::span<const NoteRange> ranges);

}  // namespace pe::objects
