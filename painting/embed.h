// Packs the call tree into the page.  The script draws from it the frames that are too
// small for the first view.
//
// The format is a zlib stream (RFC 1950) of LEB128 numbers and of columns.  Columns compress
// better than records (measured on 385,000 nodes: 809 KB, records 1,029 KB).  In order:
//
//   - version (1)
//   - flags: 1 with differences, 2 with spaces, 4 compared, 8 with repeats, 16 stacks start with
//     the function that ran
//   - decimals: counts are in units of 10^-decimals
//   - number of names, number of nodes, count that the root's width represents
//   - smallest: frames that count less are left out; number of frames left out
//   - with differences: largest difference, decimals of differences
//   - compared: 1 if noise is grey; largest change of a share, in units of 10^-9; decimals of
//     the next two; the counts that are 100 % before and after
//   - size of the texts, and the texts: UTF-8 names with their marks, each followed by "\n"
//   - number of colours, and the colours, each 3 bytes (red, green, blue)
//   - for each name the index of its colour, in planes: first the lowest bytes of all indices,
//     next their second bytes, and so on as far as the largest index needs
//   - shapes, a byte a node, depth first: children | own count << 4; 15 means 15 or more
//   - for each node the number of its name, in planes
//   - children - 15 of each node that has 15 or more; own counts - 15 likewise
//   - with spaces: the space between each node and its left neighbour on the same caller
//   - with repeats: how many frames of direct recursion the node represents at most
//   - with differences: 0 if not known, else 1 + zigzag
//   - compared: counts before; counts after; noise, a byte a node (0 not known, 1 too rare,
//     2 within, 3 beyond); for nodes whose noise is known, both ends of the interval of the
//     change, in units of 10^-6, zigzag
//
// Without spaces a node's own count lies left of its children.  Name 0 is not a function: its
// nodes represent neighbours that were left out, so that the other frames keep their places.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "painting/compared.h"
#include "painting/svg/colors.h"
#include "painting/times.h"
#include "painting/tree/call_tree.h"

namespace pe::painting {

/// In a shape: the rest of the number follows later.
inline constexpr unsigned kEscape = 15;

// Encodes differences as unsigned integers; small changes get small integers.

class DeltaCodes {
 public:
  /// The unit is a tick if all differences are whole ticks, otherwise it is finer.
  DeltaCodes(const CallTree& tree, const Ticks& ticks, bool negate);

  /// A difference is in units of 10^-decimals().
  [[nodiscard]] unsigned decimals() const noexcept { return decimals_; }
  /// The largest difference, without its sign, in units.
  [[nodiscard]] std::uint64_t largest() const { return units(largest_); }
  /// Returns 0 if `delta` is not known, 1 + 2 n for n units, and 2 n for -n units.
  [[nodiscard]] std::uint64_t code(std::optional<double> delta) const;

 private:
  [[nodiscard]] std::uint64_t units(double size) const;

  double largest_;
  bool negate_;
  unsigned decimals_;
  double per_one_;  ///< 10^decimals_
};

struct EmbedRequest {
  folded::Count whole;  ///< count that the root's width represents
  std::uint64_t limit =
      0;  ///< largest size of the base64 text, in bytes; of the times', 4 times it
  std::span<const Rgb> colors;              ///< of each name, by its number in the tree
  bool negate = false;                      ///< invert the signs of differences
  bool is_reversed = false;                 ///< stacks start with the function that ran
  const ComparedNodes* compared = nullptr;  ///< null: a single profile
  const Times* times = nullptr;             ///< of the tree's nodes; null: not known
};

struct EmbeddedTree {
  std::string bytes;           ///< empty if not even the largest frames fit the limit
  folded::Count smallest;      ///< frames that count less are left out
  std::uint64_t left_out = 0;  ///< number of frames
  std::string times{};         ///< in the form of times.h; empty: none
};

/// Leaves out the smallest frames until the rest fits the limit.
EmbeddedTree embed_tree(const CallTree& tree, const EmbedRequest& request);

}  // namespace pe::painting
