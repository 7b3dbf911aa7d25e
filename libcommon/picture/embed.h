// The call tree, packed so that the page can carry it: the script draws from it
// what the first view is too coarse for.
//
// A zlib stream (RFC 1950) of LEB128 numbers and of columns, which compress
// better than records (measured on 385,000 nodes: 809 KB, records 1,029 KB):
//
//   version (1), flags (1: with differences, 2: with spaces, 4: compared), decimals: counts are in
//   10^-decimals names, nodes, whole: how many, and the count that the root's width stands for
//   smallest, left out: frames counted less are not here, and how many those are
//   [largest difference, and the decimals of differences]
//   [compared: 1 if noise is grey; the largest change of a share in 10^-9; decimals and wholes:
//   what shares are of, before and after] size of the texts, texts: a name each, UTF-8 as shown,
//   with "\n" behind colours, each 3 bytes (red, green, blue); then the number of one for each
//   name, in planes shapes: a byte a node, in depth-first order: children | own count << 4; 15: see
//   below names of nodes, in planes: the lowest bytes of all, then the next, as many as `names`
//   needs children - 15 of those that have 15 or more, then own counts - 15 likewise [spaces
//   between a node and what lies left of it on the same caller] [differences: 0 not known, else 1 +
//   zigzag] [compared: counts before, counts after; noise, a byte a node (0 not known, 1 too rare,
//   2 within, 3 beyond); of all but the first of these, the ends of the change's interval in 10^-6,
//   zigzag]
//
// Without spaces a node's own count lies left of its children.  Name 0 is no function: its
// nodes stand for neighbours that were left out, so that nothing moves.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "picture/compared.h"
#include "picture/svg/colors.h"
#include "picture/tree/call_tree.h"

namespace pe::picture {

struct EmbedRequest {
  folded::Count whole;                      ///< what the root's width stands for
  std::uint64_t limit = 0;                  ///< bytes of base64 text
  std::span<const Rgb> colors;              ///< of each name, by its number in the tree
  bool negate = false;                      ///< differences change their signs
  const ComparedNodes* compared = nullptr;  ///< null: a single profile
};

struct EmbeddedTree {
  std::string bytes;           ///< empty: not even the largest frames fit the limit
  folded::Count smallest;      ///< frames counted less are left out
  std::uint64_t left_out = 0;  ///< how many frames
};

/// Leaves out the smallest frames until the rest fits the limit.
EmbeddedTree embed_tree(const CallTree& tree, const EmbedRequest& request);

}  // namespace pe::picture
