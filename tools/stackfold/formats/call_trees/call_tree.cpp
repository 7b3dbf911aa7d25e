// SPDX-License-Identifier: MIT
#include "stackfold/formats/call_trees/call_tree.h"

#include "stackfold/frame_text.h"

namespace pe::fold {
namespace {

constexpr std::size_t kMostDepth = 4096;

}  // namespace

bool CallTree::enter(std::size_t depth, std::string_view name) {
  if (depth > stack_.size() || depth >= kMostDepth)
    return false;
  stack_.resize(depth);
  stack_.push_back(counts_.frames().intern(clean_name(name)));
  return true;
}

}  // namespace pe::fold
