// Builds call trees from folded lines, and prints them as text.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "folded/folded_line.h"
#include "painting/tree/call_tree.h"

namespace pe::testing {

/// The tree that the builder makes from `lines`.  Each line has one count, or two as for
/// flamegraph.pl.
template <typename Builder>
painting::CallTree tree_of(const std::vector<std::string>& lines, Builder builder = Builder()) {
  for (const auto& text : lines) {
    const auto line = folded::parse_folded_line(text, folded::Columns::kPerl);
    BOOST_REQUIRE(line);
    builder.add(line->stack, line->count, line->before);
  }
  return std::move(builder).finish();
}

/// One line for each node, indented by depth: "name total/self", then " +3" for a difference.
inline std::string drawn(const painting::CallTree& tree) {
  std::string out;
  for (painting::NodeId node = 0; node < tree.size(); ++node) {
    for (painting::NodeId above = node; above != painting::kRoot; above = tree.parent(above))
      out += ' ';
    out.append(tree.name(node)).append(" ");
    append_count(out, tree.total(node));
    out += '/';
    append_count(out, tree.self(node));
    if (const auto delta = tree.delta(node))
      out += fmt::format(" {:+}", *delta);
    out += '\n';
  }
  return out;
}

}  // namespace pe::testing
