// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_tree.h"

#include <algorithm>

namespace pe::malloctrace {

using heap::kHead;
using heap::kSite;

namespace {

/// The mark in an entry of the index; the other bits are a child's number.
constexpr std::uint32_t kMarkBits = 0xe0000000;

}  // namespace

bool StackTree::start(SharedMemory shared) noexcept {
  constexpr std::size_t kFirstSize = 4096;
  shared_ = shared;
  if (!index_.map(kFirstSize))
    return false;
  shared.words()[kRoot] = kHead;
  publish(shared.header().words, 1U);
  return true;
}

/// Makes room for a path of `depth` frames; false if there is no memory.
bool StackTree::remember(std::uint32_t depth) noexcept {
  constexpr std::size_t kFirstSize = 1024;
  if (depth <= last_.size())
    return true;
  last_.unmap();
  last_depth_ = 0;
  return last_.map(std::max<std::size_t>(kFirstSize, depth * std::size_t{2}));
}

std::uint64_t StackTree::hash(std::uint32_t node, std::uint32_t code) noexcept {
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
  const std::uint64_t product = (std::uint64_t{node} << 32 | code) * kSpread;
  return product ^ product >> 32;
}

/// Returns bits of the hash that no place depends on, at positions that a child's number leaves
/// free.
std::uint32_t StackTree::mark(std::uint64_t hash) noexcept {
  static_assert(heap::kMaxWords == ~kMarkBits + 1);
  constexpr unsigned kUpperHalf = 32;
  return static_cast<std::uint32_t>(hash >> kUpperHalf) & kMarkBits;
}

std::uint32_t StackTree::find_elsewhere(std::uint32_t node, std::uint32_t code) const noexcept {
  const std::uint32_t* words = shared_.words();
  const std::size_t mask = index_.size() - 1;
  const std::uint64_t place = hash(node, code);
  for (std::uint64_t i = place;; ++i) {
    const std::uint32_t marked = index_[i & mask];
    if (marked == 0)
      return 0;
    const std::uint32_t child = marked & ~kMarkBits;
    if ((marked & kMarkBits) == mark(place) && words[child] == code &&
        words[child - 1] == (kHead | node))
      return child;
  }
}

void StackTree::put(std::uint32_t child) noexcept {
  const std::uint32_t* words = shared_.words();
  const std::size_t mask = index_.size() - 1;
  const std::uint64_t place = hash(words[child - 1] & ~kHead, words[child]);
  std::uint64_t i = place;
  while (index_[i & mask] != 0)
    ++i;
  index_[i & mask] = mark(place) | child;
}

/// Makes room for one more child that does not follow its parent.
bool StackTree::make_room() noexcept {
  if (indexed_ * 4 < index_.size() * 3)
    return true;
  PrivateArray<std::uint32_t> old = index_;
  if (!index_.map(old.size() * 2))
    return false;
  for (std::size_t i = 0; i < old.size(); ++i)
    if (old[i] != 0)
      put(old[i] & ~kMarkBits);
  old.unmap();
  return true;
}

/// Adds a child without publishing it.
std::uint32_t StackTree::append(std::uint32_t node, std::uint32_t code) noexcept {
  constexpr std::uint32_t kMost = 3;  // a head, the child, a site's number
  std::uint32_t* words = shared_.words();
  std::uint32_t& count = shared_.header().words;
  if (heap::kMaxWords - count < kMost ||
      !shared_.open<std::uint32_t>(Section::kWords, std::uint64_t{count} + kMost))
    return kFull;
  std::uint32_t child = count;
  if (child != node + 1) {
    if (!make_room())
      return kFull;
    words[child++] = kHead | node;
  }
  words[child] = code;
  if (child != count) {
    put(child);
    ++indexed_;
  }
  return child;
}

std::uint32_t StackTree::find(std::uint32_t node, std::uint32_t code) const noexcept {
  if (node + 1 < shared_.header().words && shared_.words()[node + 1] == code)
    return node + 1;
  return find_elsewhere(node, code);
}

std::uint32_t StackTree::child(std::uint32_t node, std::uint32_t code) noexcept {
  if (const std::uint32_t found = find(node, code); found != 0)
    return found;
  const std::uint32_t added = append(node, code);
  if (added != kFull)
    publish(shared_.header().words, added + 1);
  return added;
}

std::uint32_t StackTree::site(std::uint32_t node) noexcept {
  heap::Header& header = shared_.header();
  std::uint32_t* words = shared_.words();
  if (const std::uint32_t found = find(node, kSite); found != 0)
    return words[found + 1] & ~kHead;
  const std::uint32_t site = header.sites + 1;
  const bool has_room = site < heap::kMaxSites &&
                        shared_.open<heap::SiteTotals>(Section::kSites, std::uint64_t{site} + 1);
  const std::uint32_t leaf = has_room ? append(node, kSite) : kFull;
  if (leaf == kFull)
    return 0;
  words[leaf + 1] = kHead | site;
  publish(header.sites, site);
  publish(header.words, leaf + 2);
  return site;
}

}  // namespace pe::malloctrace
