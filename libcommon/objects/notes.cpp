// SPDX-License-Identifier: MIT
#include "objects/notes.h"

#include <algorithm>

namespace pe::objects {
namespace {

constexpr std::uint64_t kMaxRangeBytes = 1U << 20;
constexpr std::size_t kMaxRanges = 64;

}  // namespace

std::vector<std::byte> find_build_id(const Image& image, std::span<const NoteRange> ranges) {
  std::vector<std::byte> notes;
  for (const NoteRange& range : ranges.first(std::min(ranges.size(), kMaxRanges))) {
    notes.resize(static_cast<std::size_t>(std::min(range.bytes, kMaxRangeBytes)));
    if (!image.read_at(range.file_offset, notes))
      continue;
    if (const Bytes id = find_build_id_note(notes, range.alignment); !id.empty())
      return {id.begin(), id.end()};
  }
  return {};
}

}  // namespace pe::objects
