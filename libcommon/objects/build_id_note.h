// Finds the build id among notes, in a file or in memory.  Never allocates.
//
// The note of a build id has the name "GNU\0".
// SPDX-License-Identifier: MIT
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>

#include "base/byte_reader.h"
#include "objects/notes.h"

namespace pe::objects {

/// Returns the first build id; empty if there is none.  `alignment` is that of the segment or
/// section.
inline Bytes find_build_id_note(Bytes notes, std::uint64_t alignment) noexcept {
  constexpr std::uint32_t kMaxBuildIdBytes = 64;  // the kernel and perf keep 20
  Bytes found;
  for_each_note(notes, alignment, [&found](const Note& note) {
    if (note.type == NT_GNU_BUILD_ID && note.name.size() == sizeof ELF_NOTE_GNU &&
        std::memcmp(note.name.data(), ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 &&
        note.descriptor.size() <= kMaxBuildIdBytes)
      found = note.descriptor;
    return found.empty();
  });
  return found;
}

}  // namespace pe::objects
