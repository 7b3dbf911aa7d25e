// SPDX-License-Identifier: MIT
#include "stacktop/groups.h"

#include <algorithm>
#include <limits>

#include "base/characters.h"
#include "painting/svg/colors.h"
#include "painting/tree/name_ids.h"

namespace pe::stacktop {
namespace {

using painting::CallTree;
using painting::kRoot;
using painting::NodeId;

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
