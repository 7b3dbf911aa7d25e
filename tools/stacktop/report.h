// What is to be told about a profile, before it is text, JSON or TSV.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "picture/tree/call_tree.h"
#include "stacktop/hints.h"
#include "stacktop/options.h"
#include "stacktop/sums.h"

namespace pe::stacktop {

struct Line {
  std::string name;  ///< as it came, marks included
  Sums sums;
  std::uint32_t depth = 0;  ///< in a hierarchy
  std::string branch = {};  ///< in a hierarchy: see HierarchyLine
  std::optional<std::size_t> hint = {};
};

struct Report {
  std::string_view view;     ///< "functions", "comms", "callers", "callee hierarchy" ...
  std::string_view heading;  ///< of the column of names
  picture::Count all;        ///< the whole profile
  bool has_self = true;      ///< do the lines' own counts mean something?
  bool is_sorted_by_total = false;
  bool is_hierarchy = false;                ///< a line of depth 0 begins one
  std::vector<std::string> functions = {};  ///< whose callers or callees these are
  Sums of_functions = {};                   ///< their own
  std::vector<Line> lines = {};
  std::uint64_t left_out = 0;          ///< how many lines were
  picture::Count left_out_count = {};  ///< their own counts, or totals where they have none
  std::uint64_t deeper = 0;      ///< lines of hierarchies that have others below the greatest depth
  const Hints* hints = nullptr;  ///< what lines' `hint` are in; null: none were asked for
};

/// Throws Error if the function of --callers or --callees is not in the profile.
Report make_report(const picture::CallTree& tree, const Options& options);

/// Looks the names of lines that count 1 % and more up in `hints`, which must outlive the report.
void attach_hints(Report& report, const Hints& hints);

/// In per cent; 0 of nothing.
double percent_of(picture::Count part, picture::Count all);

}  // namespace pe::stacktop
