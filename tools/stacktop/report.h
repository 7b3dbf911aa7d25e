// The contents of a report about a profile, before it is formatted as text, JSON or TSV.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "painting/tree/call_tree.h"
#include "painting/tree/functions.h"
#include "stacktop/hints.h"
#include "stacktop/options.h"

namespace pe::stacktop {

// Adds up the counts of functions, or groups of them: of stacks that end in them, and of stacks
// that contain them.
//
// A stack counts once for a function, however often it contains it.  A subtree is a range of nodes.
// A node is below another of its function if it lies in the range of the last outermost one, so no
// stack of open frames is needed.  Costs 3 ns a node.

using painting::CallTree;
using painting::Count;
using painting::NodeId;

struct Sums {
  Count self;   ///< of stacks that end in it
  Count total;  ///< of stacks that contain it
  NodeId first =
      painting::kRoot;  ///< its first node; an outer function has a lower one than an inner
  Count waiting = {};   ///< the part of `total` that is of waits
};

/// Adds up by `key_of(node)`, a number below `keys`.  Sums that do not fit stay at Count::max().
/// `waits` is the part of each node's total that is of waits, or empty.
template <typename KeyOf>
std::vector<Sums> add_up(const CallTree& tree, std::size_t keys, KeyOf&& key_of,
                         std::span<const Count> waits = {}) {
  std::vector<Sums> sums(keys);
  painting::for_each_outermost(tree, keys, key_of, [&](NodeId node) {
    // The tree reports saturation, because its root counts all of these.
    Sums& sum = sums[key_of(node)];
    static_cast<void>(sum.total.add(tree.total(node)));
    if (!waits.empty())
      static_cast<void>(sum.waiting.add(waits[node]));
    if (sum.first == painting::kRoot)
      sum.first = node;
  });
  const auto nodes = static_cast<NodeId>(tree.size());
  for (NodeId node = painting::kRoot + 1; node < nodes; ++node)
    static_cast<void>(sums[key_of(node)].self.add(tree.self(node)));
  return sums;
}

struct Line {
  std::string name;  ///< as read, marks included
  Sums sums;
  std::uint32_t depth = 0;  ///< in a hierarchy
  std::string branch = {};  ///< in a hierarchy; see HierarchyLine
  std::optional<std::size_t> hint = {};
};

struct Report {
  std::string_view view;         ///< "functions", "comms", "callers", "callee hierarchy" ...
  std::string_view heading;      ///< of the column of names
  painting::Count all;           ///< the whole profile
  std::string unit = "samples";  ///< of counts
  bool has_self = true;          ///< the lines have meaningful own counts
  bool has_waits = false;        ///< the lines have times on CPUs and times of waits
  bool is_sorted_by_total = false;
  bool is_hierarchy = false;                ///< a line of depth 0 starts each hierarchy
  std::vector<std::string> functions = {};  ///< the lines are their callers or callees
  Sums of_functions = {};                   ///< counts of `functions` themselves
  std::vector<Line> lines = {};
  std::uint64_t left_out = 0;           ///< number of lines left out
  painting::Count left_out_count = {};  ///< of those lines: own counts, or totals without has_self
  std::uint64_t deeper = 0;             ///< sum of Hierarchy::deeper
  const Hints* hints = nullptr;  ///< Line::hint is an index into it; null: no hints requested
};

/// Throws Error if the function of --callers or --callees is not in the profile.  `waits` is as for
/// add_up().
Report make_report(const painting::CallTree& tree, const Options& options,
                   std::span<const Count> waits = {});

/// Returns the part of a total that is no wait.
Count on_cpu(const Sums& sums);

/// Searches `hints` for the names of lines with a total of at least 1 %.  `hints` must outlive the
/// report.
void attach_hints(Report& report, const Hints& hints);

/// Returns `part` in per cent of `all`; 0 if `all` is 0.
double percent_of(painting::Count part, painting::Count all);

}  // namespace pe::stacktop
