// Reads the list of stacks that a process has written (stack_list.h) into a tree.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "malloctrace/heap/layout.h"
#include "malloctrace/heap/stack_list.h"

namespace pe::heap {

/// A tree of stacks, root first, in 32-bit words.  A word is the number of a Code; its parent is
/// the word before it.  Each further child of a node is elsewhere, right after a word kHead |
/// number of the parent.  Word 0 is the root.
struct StackTree {
  static constexpr std::uint32_t kHead = 0x80000000;
  static constexpr std::uint32_t kMaxWords = 1U << 29;

  std::vector<std::uint32_t> words{kHead};
  std::vector<std::uint32_t> leaves;  ///< the innermost frame of each site; index: number - 1

  /// Returns the parent of a node above 0, which is below the node.
  [[nodiscard]] std::uint32_t parent(std::uint32_t node) const noexcept {
    const std::uint32_t before = words[node - 1];
    return (before & kHead) != 0 ? before & ~kHead : node - 1;
  }
};

/// Reads the stacks of sites 1 to `sites`.  Stops at the first entry that is cut, or that has a
/// code above `codes`; later sites then have no leaf.  A byte makes at most 16 words.
class StackListReader {
 public:
  StackListReader(std::span<const std::uint8_t> bytes, std::uint32_t codes)
      : left_(bytes), expected_(std::size_t{codes} + 1) {}

  [[nodiscard]] StackTree read(std::uint32_t sites) {
    while (tree_.leaves.size() < sites && add_entry()) {
    }
    return std::move(tree_);
  }

 private:
  using Path = std::vector<std::uint32_t>;  ///< nodes of a thread's last stack, outermost first

  /// False if the number is cut, or no 32-bit number.
  bool take(std::uint32_t& value) noexcept {
    constexpr unsigned kBits = 32;
    std::uint64_t sum = 0;
    for (unsigned shift = 0; shift < kBits && !left_.empty(); shift += kPartBits) {
      const std::uint8_t byte = left_.front();
      left_ = left_.subspan(1);
      sum |= std::uint64_t{byte & ((1U << kPartBits) - 1)} << shift;
      value = static_cast<std::uint32_t>(sum);
      if (byte >> kPartBits == 0)
        return sum >> kBits == 0;
    }
    return false;
  }

  bool add_entry() {
    std::uint32_t dropped = 0, added = 0;
    if (!take(dropped) || ((dropped & 1) != 0 && !take_slot()) || !take(added))
      return false;
    Path& path = *path_;
    dropped /= 2;
    const std::size_t flags = (std::size_t{added} + 7) / 8;
    if (flags > left_.size())
      return false;
    path.resize(path.size() - std::min<std::size_t>(dropped, path.size()));
    const auto bits = left_.first(flags);
    left_ = left_.subspan(flags);
    for (std::uint32_t i = 0; i < added; ++i)
      if (!add_frame(path, (bits[i / 8] >> i % 8 & 1U) != 0))
        return false;
    tree_.leaves.push_back(path.empty() ? 0 : path.back());
    return true;
  }

  bool take_slot() {
    std::uint32_t slot = 0;
    if (!take(slot) || slot >= kMaxThreads)
      return false;
    path_ = &paths_[slot];
    return true;
  }

  bool add_frame(Path& path, bool is_expected) {
    const std::uint32_t parent = path.empty() ? 0 : path.back();
    std::uint32_t& expected = expected_[parent == 0 ? 0 : tree_.words[parent]];
    std::uint32_t code = expected;
    if ((!is_expected && !take(code)) || code == 0 || code >= expected_.size() ||
        tree_.words.size() + 2 > StackTree::kMaxWords)
      return false;
    expected = code;
    if (parent + 1 != tree_.words.size())
      tree_.words.push_back(StackTree::kHead | parent);
    tree_.words.push_back(code);
    path.push_back(static_cast<std::uint32_t>(tree_.words.size() - 1));
    return true;
  }

  std::span<const std::uint8_t> left_;
  std::vector<std::uint32_t> expected_;  ///< by code
  std::map<std::uint32_t, Path> paths_;  ///< by slot
  Path* path_ = &paths_[0];
  StackTree tree_;
};

}  // namespace pe::heap
