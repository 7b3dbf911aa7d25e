// SPDX-License-Identifier: MIT
#include "stacktop/hierarchy.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/characters.h"
#include "painting/svg/colors.h"
#include "painting/tree/call_tree.h"

namespace pe::stacktop {

using painting::CallTree;
using painting::Count;
using painting::kRoot;
using painting::NodeId;

std::vector<NodeId> outermost(const CallTree& tree, const Members& members) {
  std::vector<NodeId> found;
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = kRoot + 1; node < nodes;) {
    const bool is_member = members[tree.name_id(node)];
    if (is_member)
      found.push_back(node);
    node = is_member ? tree.subtree_end(node) : node + 1;
  }
  return found;
}

Neighbours callers(const CallTree& tree, const Members& members) {
  Neighbours sums{.by_name = std::vector<Count>(tree.name_count()), .none = {}};
  for (const NodeId node : outermost(tree, members)) {
    const NodeId caller = tree.parent(node);
    Count& sum = caller == kRoot ? sums.none : sums.by_name[tree.name_id(caller)];
    static_cast<void>(sum.add(tree.total(node)));  // saturated only if CallTree::saturated() is
  }
  return sums;
}

Neighbours callees(const CallTree& tree, const Members& members) {
  Neighbours sums{.by_name = std::vector<Count>(tree.name_count()), .none = {}};
  struct Open {
    NodeId end;
    Count* sum;  // stacks that end before `end` add to it
  };
  std::vector<Open> open;
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = kRoot + 1; node < nodes; ++node) {
    while (!open.empty() && open.back().end <= node)
      open.pop_back();
    const NodeId caller = tree.parent(node);
    if (members[tree.name_id(node)])
      open.push_back({.end = tree.subtree_end(node), .sum = &sums.none});
    else if (caller != kRoot && members[tree.name_id(caller)])
      open.push_back({.end = tree.subtree_end(node), .sum = &sums.by_name[tree.name_id(node)]});
    if (!open.empty())
      static_cast<void>(open.back().sum->add(tree.self(node)));
  }
  return sums;
}

namespace {

/// Branches with a larger indentation are not indented further.
constexpr std::size_t kMaxIndentBytes = 120;

/// A line, the nodes that it represents, and the text before the lines below it.
struct Item {
  struct Part {
    NodeId node;
    Count count;
  };
  HierarchyLine line;
  std::vector<Part> parts;
  std::string below;
};

class Grower {
 public:
  Grower(const CallTree& tree, Direction direction, const Cutoff& cutoff)
      : tree_(tree),
        direction_(direction),
        cutoff_(cutoff),
        fewest_(tree.total(kRoot).as_double() * cutoff.share) {}

  Item top(const std::vector<NodeId>& nodes) {
    Item item{.line = {.name = tree_.name_id(nodes.front()),
                       .depth = 0,
                       .self = {},
                       .total = {},
                       .branch = {}},
              .parts = {},
              .below = {}};
    for (const NodeId node : nodes)
      add(node, tree_.total(node), item);
    return item;
  }

  [[nodiscard]] std::uint64_t deeper() const noexcept { return deeper_; }

  /// Returns the lines directly below `item`, the largest first; none at the greatest depth.
  std::vector<Item> next(const Item& item) {
    std::vector<Item> found;
    group(item, found);
    std::erase_if(found, [&](const Item& below) {
      return below.line.total.is_zero() || below.line.total.as_double() < fewest_;
    });
    if (item.line.depth >= cutoff_.levels) {
      deeper_ += found.empty() ? 0 : 1;
      return {};
    }
    std::sort(found.begin(), found.end(), [&](const Item& a, const Item& b) {
      if (a.line.total != b.line.total)
        return a.line.total > b.line.total;
      return tree_.name_text(a.line.name) < tree_.name_text(b.line.name);
    });
    for (Item& below : found)
      draw(item, found.size() == 1, &below == &found.back(), below);
    return found;
  }

 private:
  void add(NodeId node, Count count, Item& item) {
    item.parts.push_back({.node = node, .count = count});
    static_cast<void>(item.line.total.add(count));  // saturated only if CallTree::saturated() is
    if (direction_ == Direction::kCallees)
      static_cast<void>(item.line.self.add(tree_.self(node)));
  }

  void group(const Item& item, std::vector<Item>& found) {
    boost::unordered_flat_map<std::uint32_t, std::size_t> index;  // by name, in `found`
    const auto take = [&](NodeId node, Count count) {
      const std::uint32_t name = tree_.name_id(node);
      const auto [at, is_new] = index.try_emplace(name, found.size());
      if (is_new)
        found.push_back({.line = {.name = name,
                                  .depth = item.line.depth + 1,
                                  .self = {},
                                  .total = {},
                                  .branch = {}},
                         .parts = {},
                         .below = {}});
      add(node, count, found[at->second]);
    };
    for (const auto& [node, count] : item.parts) {
      if (direction_ == Direction::kCallers) {
        if (tree_.parent(node) != kRoot)
          take(tree_.parent(node), count);
        continue;
      }
      for (NodeId c = node + 1; c < tree_.subtree_end(node); c = tree_.subtree_end(c))
        take(c, tree_.total(c));
    }
  }

  static void draw(const Item& above, bool is_only, bool is_last, Item& below) {
    const bool continues_chain = is_only && above.line.depth > 0;
    below.line.branch = below.below = above.below;
    if (continues_chain || above.below.size() >= kMaxIndentBytes)
      return;
    below.line.branch += is_last ? "`- " : "|- ";
    below.below += is_last ? "   " : "|  ";
  }

  const CallTree& tree_;
  Direction direction_;
  Cutoff cutoff_;
  double fewest_;
  std::uint64_t deeper_ = 0;
};

}  // namespace

Hierarchy hierarchy(const CallTree& tree, const std::vector<NodeId>& tops, Direction direction,
                    const Cutoff& cutoff) {
  if (tops.empty())
    return {};
  std::vector<HierarchyLine> lines;
  Grower grower(tree, direction, cutoff);
  std::vector<Item> pending;
  pending.push_back(grower.top(tops));
  while (!pending.empty()) {
    const Item item = std::move(pending.back());
    pending.pop_back();
    lines.push_back(item.line);
    std::vector<Item> next = grower.next(item);
    std::move(next.rbegin(), next.rend(), std::back_inserter(pending));
  }
  return {std::move(lines), grower.deeper()};
}

namespace {

constexpr std::uint32_t kAsCaller = std::numeric_limits<std::uint32_t>::max();

std::string_view without_number(std::string_view text, char before) {
  const auto at = text.rfind(before);
  const bool is_number = at != kNone && at > 0 && at + 1 < text.size() &&
                         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at) + 1, text.end(),
                                     [](char c) { return is_digit(c) || c == '?'; });
  return is_number ? text.substr(0, at) : text;
}

/// Returns "libc.so.6" for "libc.so.6+0x1f".
std::string_view module_of_offset(std::string_view frame) {
  const auto plus = frame.rfind("+0x");
  const bool is_offset =
      plus != kNone && plus > 0 && plus + 3 < frame.size() &&
      std::all_of(frame.begin() + static_cast<std::ptrdiff_t>(plus) + 3, frame.end(), is_hex);
  return is_offset ? frame.substr(0, plus) : std::string_view();
}

/// Returns "libc.so.6" for "[libc.so.6 <7f12a0b3>]" and for "name [libc.so.6]".
std::string_view module_in_brackets(std::string_view frame) {
  if (!frame.ends_with(']'))
    return {};
  constexpr std::string_view kUnknown = "[unknown] [";  // an unknown function of a known module
  if (frame.starts_with(kUnknown)) {
    frame.remove_prefix(kUnknown.size());
    return frame.substr(0, frame.size() - 1);
  }
  const auto open = frame.starts_with('[') ? 0 : frame.rfind(" [");
  if (open == kNone)
    return {};
  std::string_view inside = frame.substr(frame.find('[', open) + 1);
  inside.remove_suffix(1);
  if (const auto address = inside.find(" <"); open == 0 && address != kNone)
    return inside.substr(0, address);
  return open == 0 ? frame : inside;
}

/// Returns the group of each name of the tree, or kAsCaller.
std::vector<std::uint32_t> groups_of_names(const CallTree& tree, By by, painting::NameIds& ids) {
  std::vector<std::uint32_t> groups(tree.name_count(), kAsCaller);
  for (std::uint32_t name = 0; name < groups.size(); ++name) {
    const std::string_view text = tree.name_text(name);
    if (by != By::kModule)
      continue;
    if (const auto module = module_of(text))
      groups[name] = ids.find_or_add(*module);
  }
  return groups;
}

}  // namespace

std::string_view comm_of(std::string_view root_frame) {
  const std::string_view with_pid = without_number(root_frame, '/');
  return without_number(with_pid, '-');
}

std::optional<std::string_view> module_of(std::string_view frame) {
  if (frame.ends_with("_[i]"))
    return std::nullopt;
  if (frame.ends_with("_[k]"))
    return "[kernel]";
  if (frame.ends_with("_[j]"))
    return "[jit]";
  const bool is_library = frame.ends_with("_[l]");
  const std::string_view text = painting::without_mark(frame);
  if (const auto tick = text.find('`'); tick != kNone && tick > 0)
    return text.substr(0, tick);
  if (const auto module = module_of_offset(text); !module.empty())
    return module;
  if (const auto module = module_in_brackets(text); !module.empty())
    return module;
  return is_library ? "[library]" : kNoModule;
}

Groups group(const CallTree& tree, By by) {
  painting::NameIds ids;
  const std::uint32_t none = by == By::kModule ? ids.find_or_add(kNoModule) : ids.find_or_add("");
  const std::vector<std::uint32_t> of_name = groups_of_names(tree, by, ids);
  Groups groups;
  groups.of_node.resize(tree.size(), none);
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = kRoot + 1; node < nodes; ++node) {
    const NodeId parent = tree.parent(node);
    std::uint32_t own = of_name[tree.name_id(node)];
    if (by != By::kModule && parent == kRoot)
      own = ids.find_or_add(by == By::kComm ? comm_of(tree.name(node)) : tree.name(node));
    groups.of_node[node] = own == kAsCaller ? groups.of_node[parent] : own;
  }
  groups.names.assign(ids.names().begin(), ids.names().end());
  return groups;
}

}  // namespace pe::stacktop
