// SPDX-License-Identifier: MIT
#include "stacktop/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "folded/build_details.h"
#include "painting/svg/colors.h"
#include "stacktop/hierarchy.h"

namespace pe::stacktop {
namespace {

using painting::Count;
using painting::kRoot;

/// Functions with a smaller total get no hint: optimising one gains less than this.
constexpr double kLeastPercentForHint = 1;

/// A possible line; its name is looked up only if it is shown.
struct Candidate {
  std::uint32_t key;
  Sums sums;
};

std::vector<Candidate> candidates_of(const std::vector<Sums>& sums) {
  std::vector<Candidate> candidates;
  for (std::uint32_t key = 0; key < sums.size(); ++key)
    if (!sums[key].total.is_zero())
      candidates.push_back({.key = key, .sums = sums[key]});
  return candidates;
}

/// Sorts candidates, removes those that the options leave out, and counts the removed ones.
template <typename NameOf>
void choose(std::vector<Candidate>& candidates, const Options& options, NameOf&& name_of,
            Report& report) {
  const auto is_before = [&](const Candidate& a, const Candidate& b) {
    if (!report.is_sorted_by_total && a.sums.self != b.sums.self)
      return a.sums.self > b.sums.self;
    if (a.sums.total != b.sums.total)
      return a.sums.total > b.sums.total;
    // In a chain of calls, the outermost function comes first.
    return a.sums.first != b.sums.first ? a.sums.first < b.sums.first
                                        : name_of(a.key) < name_of(b.key);
  };
  const double fewest = report.all.as_double() * options.least_share;
  const auto is_small = [&](const Candidate& c) {
    return (report.is_sorted_by_total ? c.sums.total : c.sums.self).as_double() < fewest;
  };
  const auto small = std::partition(candidates.begin(), candidates.end(),
                                    [&](const Candidate& c) { return !is_small(c); });
  const auto large = static_cast<std::size_t>(small - candidates.begin());
  const std::size_t shown = std::min(options.top.value_or(large), large);
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(shown);
  std::partial_sort(candidates.begin(), end, small, is_before);
  std::for_each(end, candidates.end(), [&](const Candidate& c) {
    static_cast<void>(report.left_out_count.add(report.has_self ? c.sums.self : c.sums.total));
  });
  report.left_out = candidates.size() - shown;
  candidates.erase(end, candidates.end());
}

template <typename NameOf>
void add_lines(std::vector<Candidate> candidates, const Options& options, NameOf&& name_of,
               Report& report) {
  choose(candidates, options, name_of, report);
  report.lines.reserve(candidates.size());
  for (const Candidate& c : candidates)
    report.lines.push_back({.name = std::string(name_of(c.key)), .sums = c.sums});
}

auto name_ids_of(const CallTree& tree) {
  return [&tree](NodeId node) { return tree.name_id(node); };
}

std::vector<Candidate> functions_of(const CallTree& tree, std::span<const Count> waits = {}) {
  return candidates_of(add_up(tree, tree.name_count(), name_ids_of(tree), waits));
}

void add_functions(const CallTree& tree, const Options& options, std::span<const Count> waits,
                   Report& report) {
  report.view = "functions";
  report.heading = "function";
  add_lines(
      functions_of(tree, waits), options, [&](std::uint32_t name) { return tree.name_text(name); },
      report);
}

void add_groups(const CallTree& tree, const Options& options, std::span<const Count> waits,
                Report& report) {
  const Groups groups = group(tree, *options.by);
  const bool is_module = *options.by == By::kModule;
  report.view = is_module ? "modules" : *options.by == By::kComm ? "comms" : "threads";
  report.heading = report.view.substr(0, report.view.size() - 1);
  report.has_self = is_module;  // all frames of a stack are in one thread
  report.is_sorted_by_total = report.is_sorted_by_total || !is_module;
  const auto sums = add_up(
      tree, groups.names.size(), [&](NodeId node) { return groups.of_node[node]; }, waits);
  add_lines(
      candidates_of(sums), options,
      [&](std::uint32_t key) { return std::string_view(groups.names[key]); }, report);
}

/// Finds the functions with the requested name, with or without its mark.  If there is none, finds
/// those that match it as an expression, or contain it if it is not an expression.
Members find_functions(const CallTree& tree, const Options& options) {
  const std::string& wanted = *options.function;
  const char* option = options.direction == Direction::kCallers ? "callers" : "callees";
  Members members(tree.name_count());
  const auto mark = [&](auto&& is_wanted) {
    bool is_any = false;
    for (NodeId node = kRoot + 1; node < tree.size(); ++node) {
      const std::uint32_t name = tree.name_id(node);
      if (members[name] || !is_wanted(name))
        continue;
      members[name] = is_any = true;
    }
    return is_any;
  };
  if (mark([&](std::uint32_t name) {
        const std::string_view text = tree.name_text(name);
        return text == wanted || painting::without_mark(text) == wanted;
      }))
    return members;
  // C++ names such as operator[] are not valid expressions and are searched literally.
  std::string why;
  const auto expression = folded::Expression::parse(wanted, why);
  std::vector<bool> matches(tree.name_count());
  for (std::uint32_t name = 0; name < matches.size(); ++name) {
    const std::string_view text = tree.name_text(name);
    matches[name] = expression ? expression->matches(text) : text.find(wanted) != text.npos;
  }
  if (!mark([&](std::uint32_t name) { return matches[name]; }))
    throw Error(fmt::format("--{}: no function has this name or matches it: '{}'", option, wanted));
  return members;
}

/// Fills in the requested functions and their sums.
void describe(const CallTree& tree, const Members& members, Report& report) {
  for (std::uint32_t name = 0; name < members.size(); ++name)
    if (members[name])
      report.functions.emplace_back(tree.name_text(name));
  std::sort(report.functions.begin(), report.functions.end());
  const auto sums =
      add_up(tree, 2, [&](NodeId node) { return members[tree.name_id(node)] ? 1U : 0U; });
  report.of_functions = sums[1];
}

void add_neighbours(const CallTree& tree, const Options& options, const Members& members,
                    Report& report) {
  const bool is_callers = options.direction == Direction::kCallers;
  report.view = is_callers ? "callers" : "callees";
  report.heading = is_callers ? "caller" : "callee";
  report.has_self = false;
  report.is_sorted_by_total = true;
  Neighbours found = is_callers ? callers(tree, members) : callees(tree, members);
  // Stacks without a neighbour also get a line.  Its key is larger than any name_id().
  found.by_name.push_back(found.none);
  std::vector<Candidate> candidates;
  for (std::uint32_t name = 0; name < found.by_name.size(); ++name)
    if (!found.by_name[name].is_zero())
      candidates.push_back({.key = name, .sums = {.self = {}, .total = found.by_name[name]}});
  add_lines(
      std::move(candidates), options,
      [&](std::uint32_t name) {
        if (name < tree.name_count())
          return tree.name_text(name);
        return std::string_view(is_callers ? "[no caller]" : "[itself]");
      },
      report);
}

/// Adds a hierarchy to the report and returns its lines, without their branches.
std::vector<HierarchyLine> add_hierarchy(const CallTree& tree, const Options& options,
                                         const std::vector<NodeId>& tops, Report& report) {
  const Cutoff cutoff{.share = options.least_share, .levels = options.max_levels};
  auto [found, deeper] = hierarchy(tree, tops, options.direction, cutoff);
  report.deeper += deeper;
  report.lines.reserve(report.lines.size() + found.size());
  for (HierarchyLine& line : found)
    report.lines.push_back({.name = std::string(tree.name_text(line.name)),
                            .sums = {.self = line.self, .total = line.total},
                            .depth = line.depth,
                            .branch = std::move(line.branch)});
  return std::move(found);
}

/// True if one line already covers nearly all of a function.  Its own hierarchy would repeat the
/// lines below that line.
bool is_told(Count on_one_line, Count total) {
  constexpr double kNearlyAll = 0.9;
  return on_one_line.as_double() >= kNearlyAll * total.as_double();
}

void add_hot_hierarchies(const CallTree& tree, const Options& options, Report& report) {
  auto hot = functions_of(tree);
  Options of_any_number = options;
  of_any_number.top.reset();
  const auto text_of = [&tree](std::uint32_t name) { return tree.name_text(name); };
  choose(hot, of_any_number, text_of, report);
  // Finds the outermost nodes of all functions in one pass.
  std::vector<std::uint32_t> place(tree.name_count(), static_cast<std::uint32_t>(hot.size()));
  for (std::uint32_t i = 0; i < hot.size(); ++i)
    place[hot[i].key] = i;
  std::vector<std::vector<NodeId>> tops(hot.size() + 1);
  painting::for_each_outermost(tree, tree.name_count(), name_ids_of(tree), [&](NodeId node) {
    const std::uint32_t at = place[tree.name_id(node)];
    if (at < hot.size())
      tops[at].push_back(node);
  });
  std::vector<Count> told(tree.name_count());  // by name: total of the largest line
  std::size_t left = options.top.value_or(hot.size());
  for (std::size_t i = 0; i < hot.size(); ++i) {
    if (left == 0 || is_told(told[hot[i].key], hot[i].sums.total)) {
      ++report.left_out;
      static_cast<void>(report.left_out_count.add(hot[i].sums.self));
      continue;
    }
    --left;
    for (const HierarchyLine& line : add_hierarchy(tree, options, tops[i], report))
      told[line.name] = std::max(told[line.name], line.total);
  }
}

}  // namespace

Report make_report(const CallTree& tree, const Options& options, std::span<const Count> waits) {
  Report report{.view = {}, .heading = {}, .all = tree.total(kRoot)};
  report.is_sorted_by_total = options.sort_by_total;
  report.is_hierarchy = options.is_hierarchy;
  if (options.function) {
    const Members members = find_functions(tree, options);
    describe(tree, members, report);
    if (!options.is_hierarchy) {
      add_neighbours(tree, options, members, report);
      return report;
    }
    add_hierarchy(tree, options, outermost(tree, members), report);
  } else if (options.is_hierarchy) {
    add_hot_hierarchies(tree, options, report);
  } else if (options.by) {
    report.has_waits = !waits.empty();
    add_groups(tree, options, waits, report);
    return report;
  } else {
    report.has_waits = !waits.empty();
    add_functions(tree, options, waits, report);
    return report;
  }
  const bool is_callers = options.direction == Direction::kCallers;
  report.view = is_callers ? "caller hierarchy" : "callee hierarchy";
  report.heading = "function";
  report.has_self = !is_callers;
  report.is_sorted_by_total = true;
  return report;
}

Count on_cpu(const Sums& sums) {
  const Count& waiting = sums.waiting;
  if (sums.total <= waiting)
    return {};
  const bool borrows = sums.total.billionths < waiting.billionths;
  return {.whole = sums.total.whole - waiting.whole - (borrows ? 1 : 0),
          .billionths = sums.total.billionths + (borrows ? Count::kOne : 0) - waiting.billionths};
}

void attach_hints(Report& report, const Hints& hints) {
  report.hints = &hints;
  for (Line& line : report.lines) {
    if (percent_of(line.sums.total, report.all) < kLeastPercentForHint)
      continue;
    if (const std::size_t found = hints.find(line.name); found < hints.size())
      line.hint = found;
  }
}

double percent_of(painting::Count part, painting::Count all) {
  return all.is_zero() ? 0 : 100 * part.as_double() / all.as_double();
}

}  // namespace pe::stacktop
