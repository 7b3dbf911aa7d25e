// Searches any bytes for the note of a build ID.  A found ID is within the bytes and not too long.
// It is found again if the bytes end with it, and not if the bytes end within it.
// SPDX-License-Identifier: MIT
#include "objects/image.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  constexpr std::size_t kMost = 64;
  const pe::Bytes notes(data, size);
  for (const std::uint64_t alignment : {4, 8}) {
    const pe::Bytes id = pe::objects::find_build_id_note(notes, alignment);
    if (id.empty())
      continue;
    const auto end = static_cast<std::size_t>(id.data() + id.size() - data);
    if (id.data() < data || end > size || id.size() > kMost)
      std::abort();
    const pe::Bytes again = pe::objects::find_build_id_note(notes.first(end), alignment);
    if (again.data() != id.data() || again.size() != id.size())
      std::abort();
    if (!pe::objects::find_build_id_note(notes.first(end - 1), alignment).empty())
      std::abort();  // the note is cut off
  }
  return 0;
}
