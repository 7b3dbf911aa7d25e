// SPDX-License-Identifier: MIT
#include "recording/bpf/word_pool.h"

#include <algorithm>
#include <cassert>

namespace pe::unwind {

std::uint32_t WordPool::append(std::span<const std::uint32_t> words) {
  assert(words.size() <= left());
  const std::uint32_t first = next_;
  while (!words.empty()) {
    const std::span<std::uint32_t> chunk = store_.chunk(next_ >> kChunkShift);
    const std::size_t at = next_ % kChunkWords;
    const auto part = words.first(std::min(words.size(), kChunkWords - at));
    std::copy(part.begin(), part.end(), chunk.begin() + static_cast<std::ptrdiff_t>(at));
    words = words.subspan(part.size());
    next_ += static_cast<std::uint32_t>(part.size());
  }
  return first;
}

}  // namespace pe::unwind
