// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/block_table.h"

#include <algorithm>
#include <mutex>

namespace pe::malloctrace {
namespace {

constexpr unsigned kAddressBits = 48;
constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << kAddressBits) - 1;
constexpr unsigned kLowSizeBits = 38;
constexpr std::uint64_t kLowSizeMask = (std::uint64_t{1} << kLowSizeBits) - 1;
constexpr std::uint64_t kMaxBytes = (std::uint64_t{1} << (kLowSizeBits + 64 - kAddressBits)) - 1;

}  // namespace

/// Hashes the page.
std::uint64_t BlockTable::hash(std::uint64_t avma) noexcept {
  constexpr unsigned kPageBits = 12;
  const std::uint64_t product = (avma >> kPageBits) * 0x9e3779b97f4a7c15;
  return product ^ product >> 29;
}

std::size_t BlockTable::place(std::uint64_t avma, std::size_t size) noexcept {
  constexpr std::uint64_t kBlocksOfPage = 64;
  constexpr unsigned kBlockBits = 6;
  return (hash(avma) / kParts * kBlocksOfPage + (avma >> kBlockBits) % kBlocksOfPage) & (size - 1);
}

/// Returns the index of the block, or the free index where it would be.  There is always a free
/// one.
std::size_t BlockTable::Part::find(std::uint64_t avma) const noexcept {
  std::size_t i = place(avma, entries.size());
  while (entries[i].address != 0 && (entries[i].address & kAddressMask) != avma)
    i = (i + 1) & (entries.size() - 1);
  return i;
}

bool BlockTable::Part::grow() noexcept {
  constexpr std::size_t kFirstSize = 256;
  PrivateArray<Entry> old = entries;
  if (!entries.map(old.size() == 0 ? kFirstSize : old.size() * 2))
    return false;
  for (std::size_t i = 0; i < old.size(); ++i)
    if (old[i].address != 0)
      entries[find(old[i].address & kAddressMask)] = old[i];
  old.unmap();
  return true;
}

/// Moves back entries after a freed place that would no longer be found.
void BlockTable::Part::close_gap(std::size_t gap) noexcept {
  const std::size_t mask = entries.size() - 1;
  for (std::size_t i = (gap + 1) & mask; entries[i].address != 0; i = (i + 1) & mask) {
    const std::size_t home = place(entries[i].address & kAddressMask, entries.size());
    if (((i - home) & mask) < ((i - gap) & mask))
      continue;
    entries[gap] = entries[i];
    gap = i;
  }
  entries[gap].address = 0;
}

bool BlockTable::insert(std::uint64_t avma, Block block) noexcept {
  const std::uint64_t bytes = std::min(block.bytes, kMaxBytes);
  Part& part = part_of(avma);
  const std::lock_guard guard(part.lock);
  if (part.count * 5UL >= part.entries.size() * 4 && !part.grow())
    return false;
  Entry& entry = part.entries[part.find(avma)];
  part.count += entry.address == 0 ? 1 : 0;
  entry.address = avma | bytes >> kLowSizeBits << kAddressBits;
  entry.rest = std::uint64_t{block.site} << kLowSizeBits | (bytes & kLowSizeMask);
  return true;
}

std::optional<Block> BlockTable::take(std::uint64_t avma) noexcept {
  Part& part = part_of(avma);
  const std::lock_guard guard(part.lock);
  if (part.entries.size() == 0)
    return std::nullopt;
  const std::size_t at = part.find(avma);
  const Entry entry = part.entries[at];
  if (entry.address == 0)
    return std::nullopt;
  part.close_gap(at);
  --part.count;
  return Block{static_cast<std::uint32_t>(entry.rest >> kLowSizeBits),
               entry.address >> kAddressBits << kLowSizeBits | (entry.rest & kLowSizeMask)};
}

std::uint64_t BlockTable::private_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Part& part : parts_)
    bytes += part.entries.bytes();
  return bytes;
}

}  // namespace pe::malloctrace
