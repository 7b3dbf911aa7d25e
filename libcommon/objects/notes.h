// Walks ELF notes, in a file or in memory.  Never allocates.
//
// A note is {u32 name bytes, u32 descriptor bytes, u32 type}, then the name and
// the descriptor.  Each is padded to 4 bytes, or to 8 in segments with that
// alignment (elf(5), "Notes").
// SPDX-License-Identifier: MIT
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/byte_reader.h"
#include "objects/image.h"

namespace pe::objects {

struct Note {
  Bytes name;  ///< with its NUL: "GNU\0"
  std::uint32_t type;
  Bytes descriptor;
};

/// Calls `visit(Note)` for each note until it returns false, or until a note does not fit.
/// `alignment` is that of the segment or section.
template <typename Visit>
void for_each_note(Bytes notes, std::uint64_t alignment, Visit&& visit) {
  const std::uint64_t unit = alignment == 8 ? 8 : 4;
  const auto padding = [unit](std::uint64_t bytes) { return (unit - bytes % unit) % unit; };
  ByteReader reader(notes);
  while (const auto header = reader.take<Elf64_Nhdr>()) {  // both classes have the same layout
    const auto name = reader.take_bytes(header->n_namesz);
    if (!name || !reader.skip(padding(header->n_namesz)))
      return;
    const auto descriptor = reader.take_bytes(header->n_descsz);
    if (!descriptor || !visit(Note{*name, header->n_type, *descriptor}) ||
        !reader.skip(padding(header->n_descsz)))
      return;
  }
}

// Finds the build id among notes, in a file or in memory.  Never allocates.
//
// The note of a build id has the name "GNU\0".

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

// Finds NT_GNU_BUILD_ID among an image's notes.  Private to objects/.

/// A place of notes: a PT_NOTE segment or a SHT_NOTE section.
struct NoteRange {
  std::uint64_t file_offset, bytes, alignment;
};

/// Returns the first build id in `ranges`; empty if there is none.
std::vector<std::byte> find_build_id(const Image& image, std::span<const NoteRange> ranges);

}  // namespace pe::objects
