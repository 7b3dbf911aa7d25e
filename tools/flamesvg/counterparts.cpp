// SPDX-License-Identifier: MIT
#include "flamesvg/counterparts.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace pe::painting {

Counterparts::Counterparts(const CallTree& tree) {
  nodes_.reserve(tree.size());
  for (NodeId node = kRoot; node < tree.size(); ++node)
    nodes_.push_back({.name = tree.name_id(node), .parent = tree.parent(node)});
}

std::vector<NodeId> Counterparts::in(const CallTree& reshaped) const {
  const auto key = [](NodeId parent, std::uint32_t name) {
    return std::uint64_t{parent} << 32U | name;
  };
  boost::unordered_flat_map<std::uint64_t, NodeId> children;
  children.reserve(reshaped.size());
  for (NodeId node = kRoot + 1; node < reshaped.size(); ++node)
    children.emplace(key(reshaped.parent(node), reshaped.name_id(node)), node);
  std::vector<NodeId> found(nodes_.size(), kRoot);
  for (NodeId node = kRoot + 1; node < nodes_.size(); ++node) {
    const auto [name, parent] = nodes_[node];
    const NodeId above = found[parent];
    const auto child = children.find(key(above, name));
    const bool has_callee = reshaped.subtree_end(above) > above + 1;
    if (child != children.end())
      found[node] = child->second;
    else if (reshaped.name_id(above) == name || !has_callee)
      found[node] = above;
    else
      found[node] = above + 1;
  }
  return found;
}

}  // namespace pe::painting
