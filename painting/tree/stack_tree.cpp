// SPDX-License-Identifier: MIT
#include "painting/tree/stack_tree.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/characters.h"
#include "base/error.h"

namespace pe::painting {
namespace {

std::string_view bytes_of(StackTree::Frames frames) {
  return {reinterpret_cast<const char*>(frames.data()), frames.size_bytes()};
}

/// Counts the frames that two stacks have in common, from the first on.
std::size_t common_frames(StackTree::Frames a, StackTree::Frames b) {
  return common_prefix(bytes_of(a), bytes_of(b)) / sizeof(StackTree::Frame);
}

}  // namespace

/// Adds all nodes to the index, in their order: the table's own way to grow would read them in
/// random order, and needs both tables at once.
void StackTree::make_index() {
  drop_index();
  children_.reserve(2 * nodes_.size());
  for (Node node = kTop + 1; node < nodes_.size(); ++node)
    children_.insert(node);
}

void StackTree::add_to_index(Node node) {
  if (children_.size() < children_.max_load())
    children_.insert(node);
  else
    make_index();
}

/// Replaces the stack by the next, and drops the nodes that do not lead to that.
void StackTree::Recent::keep_common(Frames next) {
  const std::size_t common = common_frames(stack, next);
  while (!path.empty() && path.back().depth > common)
    path.pop_back();
  stack.resize(common);
  stack.insert(stack.end(), next.begin() + static_cast<std::ptrdiff_t>(common), next.end());
}

/// Returns the place of the stack among the recent ones.
StackTree::Recent& StackTree::recent(Frames stack) {
  constexpr std::size_t kOutermost = 8;
  const Frames outermost = stack.first(std::min(stack.size(), kOutermost));
  return recent_[hash_bytes(bytes_of(outermost)) % recent_.size()];
}

StackTree::Node StackTree::add(Frames stack) {
  if (children_.size() + 1 < nodes_.size())
    make_index();
  Recent& last = recent(stack);
  last.keep_common(stack);
  std::vector<Step>& path = last.path;
  Step at = path.empty() ? Step{.node = kTop, .depth = 0} : path.back();
  while (at.depth < stack.size()) {
    const Frames rest = stack.subspan(at.depth);
    const auto child = children_.find(Key{.parent = at.node, .first = rest.front()});
    if (child == children_.end()) {
      at = {.node = append(at.node, rest), .depth = stack.size()};
    } else {
      const std::size_t shared = common_frames(run(*child), rest);
      const bool is_whole = shared == nodes_[*child].size;
      at = {.node = is_whole ? *child : split(*child, static_cast<std::uint32_t>(shared)),
            .depth = at.depth + shared};
    }
    path.push_back(at);
  }
  return at.node;
}

StackTree::Node StackTree::append(Node parent, Frames frames) {
  constexpr std::size_t kMost = std::numeric_limits<Node>::max();
  if (nodes_.size() >= kMost || frames_.size() + frames.size() > kMost)
    throw Error("stacks: more than 4294967295 frames differ");
  const auto node = static_cast<Node>(nodes_.size());
  nodes_.push_back({.parent = parent,
                    .begin = static_cast<std::uint32_t>(frames_.size()),
                    .size = static_cast<std::uint32_t>(frames.size())});
  frames_.append(frames);
  add_to_index(node);
  return node;
}

/// Moves the first `size` frames of a node to a new one, its parent from now on.
StackTree::Node StackTree::split(Node node, std::uint32_t size) {
  if (nodes_.size() >= std::numeric_limits<Node>::max())
    throw Error("stacks: more than 4294967295 nodes");
  children_.erase(node);
  const auto upper = static_cast<Node>(nodes_.size());
  nodes_.push_back({.parent = nodes_[node].parent, .begin = nodes_[node].begin, .size = size});
  nodes_[node] = {
      .parent = upper, .begin = nodes_[node].begin + size, .size = nodes_[node].size - size};
  add_to_index(upper);
  add_to_index(node);
  return upper;
}

void StackTree::copy_stack(Node node, std::vector<Frame>& stack) const {
  std::size_t depth = 0;
  for (Node n = node; n != kTop; n = nodes_[n].parent)
    depth += nodes_[n].size;
  stack.resize(depth);
  for (Node n = node; n != kTop; n = nodes_[n].parent) {
    const Frames frames = run(n);
    depth -= frames.size();
    std::ranges::copy(frames, stack.begin() + static_cast<std::ptrdiff_t>(depth));
  }
}

StackTreeChildren::StackTreeChildren(const StackTree& tree)
    : first_(tree.size(), kNone), next_(tree.size(), kNone) {
  for (Node node = kNone + 1; node < tree.size(); ++node) {
    Node& first = first_[tree.parent(node)];
    next_[node] = first;
    first = node;
  }
}

}  // namespace pe::painting
