// SPDX-License-Identifier: MIT
#include "malloctrace/preload/shadow_map.h"

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
  return entry_of(avma);
}

}  // namespace pe::malloctrace
