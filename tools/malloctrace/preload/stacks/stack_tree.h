// Adds stacks to the tree in the shared memory that malloctrace/heap/layout.h describes.
//
// A child right after its node is found without an index.  Other children are in a table of 4 bytes
// each, in private memory.  Three bits of an entry are from a hash, so most wrong entries are
// recognised without reading the tree.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/shared_memory.h"

namespace pe::malloctrace {

/// The caller must hold a lock for all calls.
class StackTree {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start(SharedMemory shared) noexcept;

  static constexpr std::uint32_t kRoot = 0;
  static constexpr std::uint32_t kFull = 0xffffffff;

  /// Returns the child of `node` for a heap::Code's number, which is added if it is new; kFull if
  /// there is no room.
  std::uint32_t child(std::uint32_t node, std::uint32_t code) noexcept;
  /// Returns the site of a stack whose innermost frame is `node`, which is added if it is new; 0 if
  /// there is no room.
  std::uint32_t site(std::uint32_t node) noexcept;
  /// Returns the site of a whole stack of `depth` frames, which is added if it is new.  `code(i)`
  /// is the number of a frame's code, the outermost first.  0 if there is no room.
  template <typename CodeOf>
  std::uint32_t site_of(std::uint32_t depth, CodeOf code) noexcept {
    if (!remember(depth))
      return 0;
    // A new stack has most of its frames in common with the last one.
    std::uint32_t same = 0;
    while (same < depth && same < last_depth_ && last_[same].code == code(same))
      ++same;
    std::uint32_t node = same == 0 ? kRoot : last_[same - 1].node;
    for (last_depth_ = same; last_depth_ < depth; ++last_depth_) {
      node = child(node, code(last_depth_));
      if (node == kFull)
        return 0;
      last_[last_depth_] = {code(last_depth_), node};
    }
    return site(node);
  }
  [[nodiscard]] std::size_t private_bytes() const noexcept {
    return index_.bytes() + last_.bytes();
  }

 private:
  [[nodiscard]] static std::uint64_t hash(std::uint32_t node, std::uint32_t code) noexcept;
  [[nodiscard]] static std::uint32_t mark(std::uint64_t hash) noexcept;
  [[nodiscard]] std::uint32_t find(std::uint32_t node, std::uint32_t code) const noexcept;
  [[nodiscard]] std::uint32_t find_elsewhere(std::uint32_t node, std::uint32_t code) const noexcept;
  std::uint32_t append(std::uint32_t node, std::uint32_t code) noexcept;
  bool make_room() noexcept;
  void put(std::uint32_t child) noexcept;

  struct Step {
    std::uint32_t code, node;
  };
  bool remember(std::uint32_t depth) noexcept;

  SharedMemory shared_;
  PrivateArray<Step> last_;  ///< the path to the stack that was added last
  std::uint32_t last_depth_;
  PrivateArray<std::uint32_t> index_;  ///< marked children that do not follow their parents
  std::size_t indexed_;
};

}  // namespace pe::malloctrace
