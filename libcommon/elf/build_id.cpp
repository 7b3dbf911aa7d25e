// A note is {u32 name bytes, u32 descriptor bytes, u32 type}, then the name and
// the descriptor, each padded to 4 bytes, or to 8 in segments aligned so (elf(5),
// "Notes").  Of the kind sought the name is "GNU\0".
// SPDX-License-Identifier: MIT
#include "elf/build_id.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace pe::elf {
namespace {

constexpr std::uint64_t kMaxRangeBytes = 1U << 20;
constexpr std::size_t kMaxRanges = 64;
constexpr std::uint32_t kMaxBuildIdBytes = 64;  // the kernel and perf keep 20

std::uint64_t padding(std::uint64_t bytes, std::uint64_t alignment) {
  return (alignment - bytes % alignment) % alignment;
}

std::vector<std::byte> build_id_in(Bytes notes, std::uint64_t alignment) {
  ByteReader reader(notes);
  while (const auto header = reader.take<Elf64_Nhdr>()) {  // the same in both classes
    const auto name = reader.take_bytes(header->n_namesz);
    if (!name || !reader.skip(padding(header->n_namesz, alignment)))
      break;
    const auto descriptor = reader.take_bytes(header->n_descsz);
    if (!descriptor)
      break;
    if (header->n_type == NT_GNU_BUILD_ID && name->size() == sizeof ELF_NOTE_GNU &&
        std::memcmp(name->data(), ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 && !descriptor->empty() &&
        descriptor->size() <= kMaxBuildIdBytes)
      return {descriptor->begin(), descriptor->end()};
    if (!reader.skip(padding(header->n_descsz, alignment)))
      break;
  }
  return {};
}

}  // namespace

std::vector<std::byte> find_build_id(const Image& image, std::span<const NoteRange> ranges) {
  std::vector<std::byte> notes;
  for (const NoteRange& range : ranges.first(std::min(ranges.size(), kMaxRanges))) {
    notes.resize(static_cast<std::size_t>(std::min(range.bytes, kMaxRangeBytes)));
    if (!image.read_at(range.file_offset, notes))
      continue;
    if (auto id = build_id_in(notes, range.alignment == 8 ? 8 : 4); !id.empty())
      return id;
  }
  return {};
}

}  // namespace pe::elf
