// How the counts of a call tree divide over time, and the form in which the page carries that.
//
// The form is a zlib stream (RFC 1950) of LEB128 numbers:
//
//   - version (1)
//   - start of the first step: whole seconds, and the rest in nanoseconds
//   - length of a step, in nanoseconds; number of steps
//   - decimals: counts are in units of 10^-decimals
//   - for each step the number of its parts, which are in the order of their nodes
//   - for each part its node's place in the embedded tree, less that of the part before in its step
//   - for each part its count
//
// Measured on 2.8 million samples of 30,000 stacks, an hour of 8 busy CPUs at 99 Hz in steps of
// 100 ms: 1.7 bytes a part.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "folded/count.h"
#include "painting/tree/call_tree.h"

namespace pe::painting {

class Times {
 public:
  /// Adds a part of a node's own count.  Times need no order.  Nodes are numbers of any kind until
  /// renumber().
  void add(std::uint64_t start_ns, NodeId node, Count count) {
    parts_.push_back({.start_ns = start_ns, .node = node, .count = count});
  }
  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }
  /// Replaces each node by its number in `numbers`.
  void renumber(std::span<const NodeId> numbers);

  /// Returns the parts in the form above, with `places[node]` for each node.  If the steps are more
  /// than kMostSteps, or the base64 text would be larger than `limit` bytes, joins steps in pairs.
  /// Returns an empty text if not even one step fits.
  [[nodiscard]] std::string packed(std::span<const std::uint32_t> places,
                                   std::uint64_t limit) const;

  static constexpr std::uint64_t kMostSteps = 1'000'000;

 private:
  struct Part {
    std::uint64_t start_ns;
    NodeId node;
    Count count;
  };
  std::vector<Part> parts_;
};

}  // namespace pe::painting
