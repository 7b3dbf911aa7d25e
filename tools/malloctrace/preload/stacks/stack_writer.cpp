// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_writer.h"

#include <algorithm>

namespace pe::malloctrace {

bool StackPath::reserve(std::uint32_t depth) noexcept {
  constexpr std::size_t kFirstSize = 1024;
  if (depth <= codes_.size())
    return true;
  PrivateArray<std::uint32_t> larger;
  if (!larger.map(std::max<std::size_t>(kFirstSize, depth * std::size_t{2})))
    return false;
  std::copy_n(codes_.data(), depth_, larger.data());
  codes_.unmap();
  codes_ = larger;
  return true;
}

/// Whether one more site fits, with an entry of `added` frames.
bool StackWriter::has_room(std::uint32_t added) const noexcept {
  const heap::Header& header = shared_.header();
  const std::uint64_t site = std::uint64_t{header.sites} + 1;
  const std::uint64_t end = header.stack_bytes + heap::most_bytes_of_entry(added);
  return site < heap::kMaxSites && end <= heap::kMaxStackBytes &&
         shared_.open<heap::SiteTotals>(Section::kSites, site + 1) &&
         shared_.open<std::uint8_t>(Section::kStacks, end);
}

}  // namespace pe::malloctrace
