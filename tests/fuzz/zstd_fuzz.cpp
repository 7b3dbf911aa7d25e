// Expands any bytes as zstd data.  The result does not depend on the sizes of the pieces of input
// and output, and is the same for a whole buffer.
//
// Input: a byte, the size of the pieces; the data.
// SPDX-License-Identifier: MIT
#include "base/io/compression.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

namespace {

constexpr std::size_t kMostBytes = 4UL << 20U;

struct Expanded {
  std::vector<std::byte> bytes;
  bool is_damaged = false;
  bool operator==(const Expanded&) const = default;
};

/// Expands `data`: `piece` bytes go in, and twice as many come out.  Returns nothing if the result
/// exceeds kMostBytes.
Expanded expand(pe::Bytes data, std::size_t piece) {
  pe::ZstdExpander expander;
  std::vector<std::byte> room(2 * piece);
  Expanded all;
  while (!data.empty()) {
    pe::Bytes part = data.first(std::min(piece, data.size()));
    data = data.subspan(part.size());
    for (;;) {
      const std::size_t before = part.size();
      const auto bytes = expander.expand(part, room);
      if (!bytes)
        return {std::move(all.bytes), true};
      if (*bytes > room.size() || (*bytes < room.size() && !part.empty()) || part.size() > before)
        std::abort();
      all.bytes.insert(all.bytes.end(), room.begin(),
                       room.begin() + static_cast<std::ptrdiff_t>(*bytes));
      if (all.bytes.size() > kMostBytes)
        return {};
      if (*bytes < room.size())
        break;
    }
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  if (size == 0)
    return 0;
  const pe::Bytes bytes = pe::Bytes(data, size).subspan(1);
  const Expanded whole = expand(bytes, 1U << 16);
  Expanded pieces = expand(bytes, 1 + static_cast<std::size_t>(data[0]) % 100);
  // The bytes before the damage depend on the pieces; whether there is damage does not.
  if (whole.is_damaged != pieces.is_damaged)
    std::abort();
  if (whole.is_damaged)
    pieces.bytes = whole.bytes;
  if (!(whole == pieces))
    std::abort();
  std::vector<std::byte> room(whole.bytes.size());
  if (pe::unzstd(bytes, room) && !whole.is_damaged && room != whole.bytes)
    std::abort();
  return 0;
}
