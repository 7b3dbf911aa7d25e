// The heap of a process as it was when we read it: where the process allocated blocks, how many,
// and how much it still holds.
//
// It is built from the memory that the process shares (layout.h).  That memory is untrusted: every
// number is checked, and contradictions are counted.  If the process still runs, its threads may
// change sums while they are read, and the sums are off by that much.  If it has ended, they are
// exact.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "malloctrace/heap/layout.h"
#include "malloctrace/heap/shared_file.h"

namespace pe::heap {

// Reads the list of stacks that a process has written (stack_list.h) into a tree.

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

/// The sums of a site over all threads.  Numbers of allocations are in the header's unit, see
/// whole().
struct Sums {
  std::uint64_t allocated_bytes = 0, allocated_count = 0;
  std::uint64_t live_bytes = 0, live_count = 0;  ///< held when it was read
  std::uint64_t peak_bytes = 0;                  ///< held when the process held most
  std::uint64_t temporary_count = 0;
  std::uint32_t first_tick = 0, last_tick = 0;  ///< of its allocations; meaningless without any
};

struct Site {
  Sums sums;
  std::uint32_t node = 0;  ///< its stack's innermost frame in Heap::stacks; 0: not known
};

struct Frame {
  std::uint64_t avma;    ///< the return address, or if `is_exact` the instruction's own
  std::uint32_t module;  ///< index into Heap::modules plus one; 0: none known
  bool is_exact;
};

struct Heap {
  Header header{};              ///< `command` ends with a NUL
  std::vector<Module> modules;  ///< `path` is unescaped, `end` is not below start
  std::vector<Code> codes;      ///< index: number - 1
  std::vector<Script> scripts;  ///< index: number - 1; copies are within the next
  std::vector<std::byte> copies;
  StackTree stacks;
  std::vector<Site> sites;       ///< index: number - 1
  std::uint64_t file_bytes = 0;  ///< memory that the file uses
  std::uint64_t damaged = 0;     ///< numbers that contradict others
  std::uint64_t peak_bytes = 0;  ///< the most that was held at once

  /// A record of the sample stream has no room for more frames.
  static constexpr std::size_t kMaxFrames = 8'000;

  /// The stack of a site, innermost first.
  struct Stack {
    std::vector<Frame> frames;
    std::vector<std::uint32_t> scripts;  ///< indices in Heap::scripts
  };
  /// Stores the frames of a site.  False if there were more than kMaxFrames of a kind: the
  /// outermost ones are then missing.
  bool stack(const Site& site, Stack& into) const;

  /// Returns a number of allocations: exact counts unchanged, estimates rounded.
  [[nodiscard]] std::uint64_t whole(std::uint64_t count) const noexcept {
    return header.sample_bytes == 0 ? count
                                    : count / kCountUnit + (count % kCountUnit >= kCountUnit / 2);
  }

  /// Returns the sums over all sites.
  [[nodiscard]] Sums total() const noexcept;

  /// Returns by how much peak_bytes may exceed the true peak, because it is the greatest of many
  /// estimates; 0 if it is not an estimate.  An estimate of x held bytes has a standard error of at
  /// most sqrt(x * sample_bytes).  A sample of s bytes represents s / p bytes, p = 1 - exp(-s /
  /// sample_bytes).  It adds (1 - p) (s / p)^2 to the variance.  The greatest of thousands is about
  /// four standard errors too high.
  [[nodiscard]] std::uint64_t peak_excess_bytes() const noexcept;
};

/// nullopt if the file is no longer the shared memory of a process.
std::optional<Heap> read_heap(const SharedFile& file);

}  // namespace pe::heap
