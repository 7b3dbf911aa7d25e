// The build id among notes, wherever those are: in a file, or loaded.  Never allocates.
//
// A note is {u32 name bytes, u32 descriptor bytes, u32 type}, then the name and
// the descriptor, each padded to 4 bytes, or to 8 in segments aligned so (elf(5),
// "Notes").  Of the kind sought the name is "GNU\0".
// SPDX-License-Identifier: MIT
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>

#include "base/byte_reader.h"

namespace pe::objects {

/// The first that there is; empty if there is none.  `alignment` is that of the segment or section.
inline Bytes find_build_id_note(Bytes notes, std::uint64_t alignment) noexcept {
  constexpr std::uint32_t kMaxBuildIdBytes = 64;  // the kernel and perf keep 20
  const std::uint64_t unit = alignment == 8 ? 8 : 4;
  const auto padding = [unit](std::uint64_t bytes) { return (unit - bytes % unit) % unit; };
  ByteReader reader(notes);
  while (const auto header = reader.take<Elf64_Nhdr>()) {  // the same in both classes
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
