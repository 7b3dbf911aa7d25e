// SPDX-License-Identifier: MIT
#include "names/demangle_cost.h"

#define HAVE_DECL_BASENAME 1  // as in demangle.cpp
#include <libiberty/demangle.h>

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/characters.h"

namespace pe::names {
namespace {

// A demangled name of 16 KiB has some 10,000 nodes.  Pack expansions search their
// subtree, so the time may grow with the square of this limit: 0.1 s in the worst case.
constexpr std::uint64_t kMaxNodes = 32 * 1024;
// cplus_demangle_print_callback takes 16 bytes of stack for each pair of a
// template and a reference to a template parameter, each counted up to twice.
constexpr std::uint64_t kMaxScopePairs = 16 * 1024;
// libiberty stops printing at depth 1,024 (MAX_RECURSION_COUNT of libiberty/cp-demangle.c).
constexpr std::uint64_t kMaxDepth = 2 * 1024;

using Node = const demangle_component;

/// Returns the subtrees of a node; demangle.h documents which member of the union holds them.
std::pair<Node*, Node*> children_of(Node& node) {
  switch (node.type) {
    case DEMANGLE_COMPONENT_NAME:
    case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
    case DEMANGLE_COMPONENT_FUNCTION_PARAM:
    case DEMANGLE_COMPONENT_SUB_STD:
    case DEMANGLE_COMPONENT_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_OPERATOR:
    case DEMANGLE_COMPONENT_CHARACTER:
    case DEMANGLE_COMPONENT_NUMBER:
    case DEMANGLE_COMPONENT_TEMPLATE_TYPE_PARM:
      return {nullptr, nullptr};
    case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
      return {node.u.s_extended_operator.name, nullptr};
    case DEMANGLE_COMPONENT_FIXED_TYPE:
      return {node.u.s_fixed.length, nullptr};
    case DEMANGLE_COMPONENT_CTOR:
      return {node.u.s_ctor.name, nullptr};
    case DEMANGLE_COMPONENT_DTOR:
      return {node.u.s_dtor.name, nullptr};
    case DEMANGLE_COMPONENT_LAMBDA:
    case DEMANGLE_COMPONENT_UNNAMED_TYPE:
    case DEMANGLE_COMPONENT_DEFAULT_ARG:
      return {node.u.s_unary_num.sub, nullptr};
    default:
      return {node.u.s_binary.left, node.u.s_binary.right};
  }
}

/// Counts each node of a tree as often as printing visits it, but visits each only once.
class Measure {
 public:
  Measure(const void* memory, std::size_t bytes)
      : memory_(static_cast<const std::byte*>(memory)), bytes_(bytes) {}

  bool is_cheap(Node& root) {
    return nodes_below(root) <= kMaxNodes && templates_ * scopes_ <= kMaxScopePairs;
  }

 private:
  std::uint64_t nodes_below(Node& node) {
    // Until a node is counted its entry means "too many", so a cycle through it is refused.
    const auto [known, is_new] = nodes_.try_emplace(&node, kMaxNodes + 1);
    if (!is_new)
      return known->second;
    const auto [left, right] = children_of(node);
    count_scopes(node, left);
    std::uint64_t nodes = 1;
    if (++depth_ > kMaxDepth)
      nodes = kMaxNodes + 1;
    for (Node* child : {left, right})
      if (nodes <= kMaxNodes && is_node(child))
        nodes = std::min(nodes + nodes_below(*child), kMaxNodes + 1);
    --depth_;
    nodes_[&node] = nodes;
    return nodes;
  }

  /// All nodes are in one block.  Later versions of libiberty have kinds of nodes that
  /// children_of() does not know.  It may return a number as a subtree (binutils 2.47, unnamed
  /// enums).
  [[nodiscard]] bool is_node(Node* child) const {
    const std::less<> before;
    const auto* at = reinterpret_cast<const std::byte*>(child);
    return child != nullptr && !before(at, memory_) && before(at, memory_ + bytes_) &&
           static_cast<std::size_t>(at - memory_) % sizeof(Node) == 0;
  }

  void count_scopes(Node& node, Node* left) {
    templates_ += node.type == DEMANGLE_COMPONENT_TEMPLATE ? 1 : 0;
    const bool is_reference = node.type == DEMANGLE_COMPONENT_REFERENCE ||
                              node.type == DEMANGLE_COMPONENT_RVALUE_REFERENCE;
    scopes_ += is_reference && is_node(left) && left->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM;
  }

  const std::byte* memory_;
  std::size_t bytes_;
  boost::unordered_flat_map<Node*, std::uint64_t> nodes_;
  std::uint64_t templates_ = 0, scopes_ = 0, depth_ = 0;
};

/// The cost of parsing D's text up to some place: its length with back references
/// expanded, and how often one function type in another may be parsed twice.
struct DCost {
  std::uint64_t bytes = 0, doublings = 0;
};

/// Returns the place after the length and the name that start at `at`; a function type
/// may follow there.  Returns `at` itself if no length starts there.
std::size_t after_name(std::string_view text, std::size_t at) {
  std::size_t end = at;
  std::size_t number = 0;
  for (; end < text.size() && is_digit(text[end]) && number < text.size(); ++end)
    number = number * 10 + static_cast<std::size_t>(text[end] - '0');
  return end == at ? at : std::min(end + number, text.size());
}

}  // namespace

bool is_cheap_to_print(const demangle_component& tree, const void* memory, std::size_t bytes) {
  return Measure(memory, bytes).is_cheap(tree);
}

bool is_cheap_rust(std::string_view mangled) {
  // <binder> = "G" <base-62-number> follows the F of a function type or the D of
  // a trait object.  No real code has a number of three digits: 3,844 lifetimes or more.
  for (std::size_t at = 0; at + 4 < mangled.size(); ++at) {
    if ((mangled[at] != 'F' && mangled[at] != 'D') || mangled[at + 1] != 'G')
      continue;
    std::size_t end = at + 2;
    while (end < mangled.size() &&
           (is_digit(mangled[end]) || is_lower(mangled[end]) || is_upper(mangled[end])))
      ++end;
    if (end - (at + 2) >= 3 && end < mangled.size() && mangled[end] == '_')
      return false;
  }
  return true;
}

// A back reference is 'Q' and a base-26 number N, whose last digit is in lower
// case.  It refers to the text N bytes before the 'Q' (D's ABI specification, "Name Mangling").
// The referenced text ends before the 'Q', so all of the text between is an upper bound.
bool is_cheap_d(std::string_view mangled) {
  constexpr std::size_t kMaxBytes = 1024;
  constexpr DCost kMaxCost{.bytes = 8 * 1024, .doublings = 10};
  if (mangled.size() > kMaxBytes)
    return false;
  std::vector<DCost> cost(mangled.size() + 1);  // of the text before each byte
  const auto may_start_function = [&](std::size_t at) {
    return at < mangled.size() &&
           std::string_view("FUVWRYM").find(mangled[at]) != std::string_view::npos;
  };
  for (std::size_t at = 0; at < mangled.size(); ++at) {
    DCost here{cost[at].bytes + 1, cost[at].doublings};
    if (is_digit(mangled[at]) && may_start_function(after_name(mangled, at)))
      ++here.doublings;
    std::size_t distance = 0;
    std::size_t end = at + 1;
    while (mangled[at] == 'Q' && end < mangled.size() && is_upper(mangled[end]) && distance <= at)
      distance = distance * 26 + static_cast<std::size_t>(mangled[end++] - 'A');
    if (mangled[at] == 'Q' && end < mangled.size() && is_lower(mangled[end])) {
      distance = distance * 26 + static_cast<std::size_t>(mangled[end] - 'a');
      const DCost& start = cost[at - std::min(distance, at)];
      here.bytes += cost[at].bytes - start.bytes;
      here.doublings +=
          cost[at].doublings - start.doublings + (may_start_function(end + 1) ? 1 : 0);
    }
    if (here.bytes > kMaxCost.bytes || here.doublings > kMaxCost.doublings)
      return false;
    cost[at + 1] = here;
  }
  return true;
}

}  // namespace pe::names
