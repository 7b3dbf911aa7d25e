// Reads the profile that a page carries, in the format of embed.h.
//
// A page is untrusted: every number is checked before use.  The checksum of the zlib stream detects
// changes.  Cost: stackfold folds the page of 100,000 different stacks (2 MB) in 70 ms.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pe::painting {

/// A call tree, without the colours and changes that only the page needs.
struct PageTree {
  struct Node {
    std::uint32_t name = 0;   ///< index into names; 0: frames that were left out
    std::uint32_t depth = 0;  ///< 0: the root of all stacks, which is not a function
    std::uint64_t self = 0;   ///< own count, in units of 10^-decimals
  };
  std::string bytes;                    ///< those that the views refer to
  std::vector<std::string_view> names;  ///< as in folded text, with their marks
  std::vector<Node> nodes;              ///< depth first; never empty
  unsigned decimals = 0;                ///< 0 to 9
  std::uint64_t smallest = 0;           ///< frames that count less are left out, in the same units
  std::uint64_t left_out = 0;           ///< number of frames
  bool is_comparison = false;           ///< of two profiles
  bool is_reversed = false;             ///< stacks start with the function that ran
  bool folds_recursion = false;         ///< a frame may represent several
};

/// `bytes`: the expanded zlib stream.  Returns nullopt if it is not a complete tree.
std::optional<PageTree> read_tree(std::string bytes);

struct PageProfile {
  std::optional<PageTree> tree;  ///< nullopt: `problem` tells why there is none
  std::string problem;           ///< or damage that did not affect the tree; empty: none
  std::vector<std::pair<std::string, std::string>> facts;  ///< about the recording
  std::string count_name;                                  ///< the unit of counts
};

/// Does a file with this start hold an SVG or HTML page with an SVG drawing?
bool looks_like_page(std::string_view head);

/// `page`: the whole file.
PageProfile read_page(std::string_view page);

}  // namespace pe::painting
