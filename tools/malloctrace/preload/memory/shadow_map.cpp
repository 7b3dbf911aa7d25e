// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/shadow_map.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "recording/inprocess/keep_errno.h"

namespace pe::malloctrace {

bool ShadowMap::insert_otherwise(Leaf& leaf, std::uint64_t avma, std::uint32_t entry) noexcept {
  std::uint32_t number = kCells;  // of the cell that we have taken
  while (true) {
    const Found found = find(leaf, avma);
    if (found.word != nullptr) {
      if (change(*found.word, found.value, entry))
        return true;
      continue;
    }
    if (number == kCells)
      number = __atomic_fetch_add(&leaf.cell_count, 1U, __ATOMIC_RELAXED);
    if (number >= kCells)
      return false;
    Cell& cell = leaf.cells[number];
    store_relaxed(cell.words[0], found.last_value);
    store_relaxed(cell.words[1], entry);
    if (change(*found.last, found.last_value, kIsLink | number))
      return true;
    cell = {};
  }
}

ShadowMap::Leaf* ShadowMap::add_leaf(std::uint64_t avma) noexcept {
  auto* leaf = static_cast<Leaf*>(map_private(sizeof(Leaf)));
  if (leaf == nullptr)
    return nullptr;
  Leaf* nothing = nullptr;
  Leaf*& place = leaves_[(avma >> kLeafBits) % kLeaves];
  // Another thread may have been faster.
  if (!__atomic_compare_exchange_n(&place, &nothing, leaf, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    unmap_private(leaf, sizeof(Leaf));
  else if (const std::uint32_t number = __atomic_fetch_add(&leaf_count_, 1U, __ATOMIC_RELAXED);
           number < kNotedLeaves)
    publish(noted_[number], leaf);
  return leaf_of(avma);
}

std::uint64_t ShadowMap::private_bytes() const noexcept {
  constexpr std::uint64_t kPage = 4096;
  const inprocess::KeepErrno keep;
  std::array<unsigned char, sizeof(Leaf) / kPage + 1> residence;
  const std::uint64_t count = load_relaxed(leaf_count_);
  const std::uint64_t asked = std::min<std::uint64_t>(count, kNotedLeaves);
  std::uint64_t pages = 0;
  for (std::uint64_t i = 0; i < asked; ++i) {
    Leaf* leaf = load_relaxed(noted_[i]);
    if (leaf != nullptr && ::syscall(SYS_mincore, leaf, sizeof(Leaf), residence.data()) == 0)
      pages += static_cast<std::uint64_t>(
          std::count_if(residence.begin(), residence.end(),
                        [](unsigned char is_there) { return (is_there & 1U) != 0; }));
  }
  return asked == 0 ? 0 : pages * kPage * count / asked;
}

}  // namespace pe::malloctrace
