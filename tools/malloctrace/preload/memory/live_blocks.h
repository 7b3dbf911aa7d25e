// The live blocks: in a shadow of the heap if the allocator is glibc's and nothing is sampled, else
// in a table.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "malloctrace/preload/memory/block_table.h"
#include "malloctrace/preload/memory/shadow_map.h"

namespace pe::malloctrace {

class LiveBlocks {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start(bool has_shadow) noexcept {
    has_shadow_ = has_shadow;
    return !has_shadow || shadow_.start();
  }

  /// Replaces any block at this address; false if there is no memory.
  bool insert(const void* memory, Block block) noexcept {
    const auto avma = reinterpret_cast<std::uint64_t>(memory);
    return has_shadow_ ? shadow_.insert(avma, block, table_) : table_.insert(avma, block);
  }
  /// Removes a block; its site is 0 if it is not known.  The memory must still be live.
  Block take(const void* memory) noexcept {
    const auto avma = reinterpret_cast<std::uint64_t>(memory);
    return has_shadow_ ? shadow_.take(avma, table_) : table_.take(avma).value_or(Block{});
  }
  void prefetch(const void* memory) const noexcept {
    if (has_shadow_)
      shadow_.prefetch(reinterpret_cast<std::uint64_t>(memory));
  }
  [[nodiscard]] std::uint64_t private_bytes() const noexcept {
    return table_.private_bytes() + (has_shadow_ ? shadow_.private_bytes() : 0);
  }

 private:
  bool has_shadow_;
  ShadowMap shadow_;
  BlockTable table_;
};

}  // namespace pe::malloctrace
