// Stacks of numbered frames as paths in a tree: stacks with the same callers store them once.
//
// A node is a run of frames that no stack leaves or ends in the middle of, so there are at most two
// nodes a stack.  Costs 4 bytes for each frame that the stacks before lack, and 20 to 25 bytes a
// node.  A known stack takes one look-up for each node below the frames that it shares with a
// recent stack.  No function recurses, because stacks may be 100,000 frames deep.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash_bytes.h"
#include "painting/tree/growing_array.h"

namespace pe::painting {

class StackTree {
 public:
  using Frame = std::uint32_t;
  using Frames = std::span<const Frame>;
  using Node = std::uint32_t;
  /// The stack without frames; its own parent.
  static constexpr Node kTop = 0;

  StackTree() : children_(0, Hash{this}, Equal{this}) {
    nodes_.push_back({.parent = kTop, .begin = 0, .size = 0});
  }
  StackTree(const StackTree&) = delete;  // the set's functions refer to this
  StackTree& operator=(const StackTree&) = delete;
  StackTree(StackTree&&) = delete;
  StackTree& operator=(StackTree&&) = delete;
  ~StackTree() = default;

  /// Adds a stack, root first.  Returns the node in which it ends, which stays that of the stack.
  /// Throws Error beyond 2^32 - 1 stored frames or nodes.
  Node add(Frames stack);

  /// Number of nodes; never 0.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] Node parent(Node node) const { return nodes_[node].parent; }
  /// The frames between the parent's last and the node's last, this included.  The next add()
  /// invalidates the view.
  [[nodiscard]] Frames run(Node node) const {
    return frames_.all().subspan(nodes_[node].begin, nodes_[node].size);
  }
  /// Frees the memory that only add() needs; the next add() makes it again.
  void drop_index() {
    children_.clear();
    children_.rehash(0);
  }
  /// Replaces `stack` by all frames down to the node's last, root first.
  void copy_stack(Node node, std::vector<Frame>& stack) const;

 private:
  struct Run {
    Node parent;
    std::uint32_t begin, size;  ///< in frames_
  };
  /// A node by its parent and its first frame.
  struct Key {
    Node parent;
    Frame first;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    using is_transparent = void;
    using is_avalanching = void;
    const StackTree* owner;
    std::size_t operator()(Node node) const { return (*this)(owner->key_of(node)); }
    std::size_t operator()(const Key& key) const {
      return detail::mix(std::uint64_t{key.parent} << 32U | key.first, 0x9e3779b97f4a7c15);
    }
  };
  struct Equal {
    using is_transparent = void;
    const StackTree* owner;
    bool operator()(Node a, Node b) const { return a == b; }
    bool operator()(const Key& key, Node node) const { return key == owner->key_of(node); }
    bool operator()(Node node, const Key& key) const { return key == owner->key_of(node); }
  };
  /// A node of a stack, and its depth with the node's run.
  struct Step {
    Node node;
    std::size_t depth;
  };
  /// A stack added before.  A split takes no node from its path, so its steps stay right.
  struct Recent {
    std::vector<Frame> stack;
    std::vector<Step> path;  ///< some of its nodes
    void keep_common(Frames next);
  };

  [[nodiscard]] Key key_of(Node node) const {
    return {.parent = nodes_[node].parent, .first = frames_[nodes_[node].begin]};
  }
  Recent& recent(Frames stack);
  void make_index();
  void add_to_index(Node node);
  Node append(Node parent, Frames frames);
  Node split(Node node, std::uint32_t size);

  GrowingArray<Frame> frames_;  ///< of all runs
  GrowingArray<Run> nodes_;
  boost::unordered_flat_set<Node, Hash, Equal> children_;  ///< all but kTop, or none
  /// By the hash of the outermost frames: threads that run at once differ there.
  std::array<Recent, 16> recent_;
};

/// The children of each node of a tree to which no stack is added any more, in no order.
class StackTreeChildren {
 public:
  using Node = StackTree::Node;
  static constexpr Node kNone = StackTree::kTop;

  explicit StackTreeChildren(const StackTree& tree);
  /// Returns kNone if there is none.
  [[nodiscard]] Node first(Node parent) const { return first_[parent]; }
  [[nodiscard]] Node next(Node sibling) const { return next_[sibling]; }

 private:
  std::vector<Node> first_, next_;
};

}  // namespace pe::painting
