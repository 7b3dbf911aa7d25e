// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/shadow_map.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "inprocess/keep_errno.h"

namespace pe::malloctrace {

std::uint32_t* ShadowMap::add_leaf(std::uint64_t avma) noexcept {
  constexpr std::size_t kBytes = kLeafSize * sizeof(std::uint32_t);
  auto* leaf = static_cast<std::uint32_t*>(map_private(kBytes));
  if (leaf == nullptr)
    return nullptr;
  std::uint32_t* nothing = nullptr;
  std::uint32_t*& place = leaves_[(avma >> kLeafBits) % kLeaves];
  // Another thread may have been faster.
  if (!__atomic_compare_exchange_n(&place, &nothing, leaf, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    unmap_private(leaf, kBytes);
  else if (const std::uint32_t number = __atomic_fetch_add(&leaf_count_, 1U, __ATOMIC_RELAXED);
           number < kNotedLeaves)
    publish(noted_[number], leaf);
  return entry_of(avma);
}

std::uint64_t ShadowMap::private_bytes() const noexcept {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::size_t kBytes = kLeafSize * sizeof(std::uint32_t);
  const inprocess::KeepErrno keep;
  std::array<unsigned char, kBytes / kPage> residence;
  const std::uint64_t count = load_relaxed(leaf_count_);
  const std::uint64_t asked = std::min<std::uint64_t>(count, kNotedLeaves);
  std::uint64_t pages = 0;
  for (std::uint64_t i = 0; i < asked; ++i) {
    std::uint32_t* leaf = load_relaxed(noted_[i]);
    if (leaf != nullptr && ::syscall(SYS_mincore, leaf, kBytes, residence.data()) == 0)
      pages += static_cast<std::uint64_t>(
          std::count_if(residence.begin(), residence.end(),
                        [](unsigned char is_there) { return (is_there & 1U) != 0; }));
  }
  return asked == 0 ? 0 : pages * kPage * count / asked;
}

}  // namespace pe::malloctrace
