// Finds the build id among notes, in a file or in memory.  Never allocates.
//
// A note is {u32 name bytes, u32 descriptor bytes, u32 type}, then the name and
// the descriptor.  Each is padded to 4 bytes, or to 8 in segments with that
// alignment (elf(5), "Notes").  The note of a build id has the name "GNU\0".
// SPDX-License-Identifier: MIT
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>

#include "base/byte_reader.h"

namespace pe::objects {

/// Returns the first build id; empty if there is none.  `alignment` is that of the segment or
/// section.
inline Bytes find_build_id_note(Bytes notes, std::uint64_t alignment) noexcept {
  constexpr std::uint32_t kMaxBuildIdBytes = 64;  // the kernel and perf keep 20
  const std::uint64_t unit = alignment == 8 ? 8 : 4;
  const auto padding = [unit](std::uint64_t bytes) { return (unit - bytes % unit) % unit; };
  ByteReader reader(notes);
  while (const auto header = reader.take<Elf64_Nhdr>()) {  // both classes have the same layout
    const auto name = reader.take_bytes(header->n_namesz);
    if (!name || !reader.skip(padding(header->n_namesz)))
      break;
    const auto descriptor = reader.take_bytes(header->n_descsz);
    if (!descriptor)
      break;
    if (header->n_type == NT_GNU_BUILD_ID && name->size() == sizeof ELF_NOTE_GNU &&
        std::memcmp(name->data(), ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 && !descriptor->empty() &&
        descriptor->size() <= kMaxBuildIdBytes)
      return *descriptor;
    if (!reader.skip(padding(header->n_descsz)))
      break;
  }
  return {};
}

}  // namespace pe::objects
