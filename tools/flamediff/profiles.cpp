// SPDX-License-Identifier: MIT
#include "flamediff/profiles.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/characters.h"
#include "base/error.h"
#include "base/io/input.h"
#include "base/name_parts.h"
#include "base/text.h"
#include "folded/build_details.h"
#include "folded/folded_reader.h"

namespace pe::folded {
namespace {

constexpr bool is_name_character(char c) {
  return is_word(c) || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

/// The marks of functions that one run inlines, compiles or interprets, and the next does not.
constexpr std::array<std::string_view, 3> kMarksOfRuns = {"_[i]", "_[j]", "_[s]"};

std::string comparable(std::string_view frame) {
  std::string name = without_template_arguments(without_build_details(frame));
  if (const std::string_view mark = mark_of(name);
      std::ranges::find(kMarksOfRuns, mark) != kMarksOfRuns.end())
    name.resize(name.size() - mark.size());
  return name;
}

}  // namespace

std::string without_template_arguments(std::string_view text) {
  NameParts parts(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool is_open = text[at] == '<' && at > 0 &&
                         (is_name_character(text[at - 1]) || text.substr(0, at).ends_with("::"));
    // It reads on inside other brackets, because the arguments of functions also have templates.
    const std::size_t end = is_open || text[at] == 'o' ? parts.next(at) : at + 1;
    out += is_open && end > at + 1 ? "<...>" : text.substr(at, end - at);
    at = end;
  }
  return out;
}

FrameRewriter::FrameRewriter(const std::string& option, std::span<const std::string> expressions,
                             bool cuts_build_details)
    : cuts_build_details_(cuts_build_details) {
  expressions_.reserve(expressions.size());
  for (const std::string& text : expressions) {
    expressions_.push_back(compile(text));
    if (!expressions_.back()->ok())
      throw UsageError(fmt::format("--{}: not a regular expression: '{}': {}", option, text,
                                   expressions_.back()->error()));
  }
}

FrameRewriter::FrameRewriter(FrameRewriter&&) noexcept = default;
FrameRewriter::~FrameRewriter() = default;

std::string FrameRewriter::rewrite(std::string_view frame) const {
  std::string name = cuts_build_details_ ? comparable(frame) : std::string(frame);
  for (const auto& expression : expressions_)
    re2::RE2::GlobalReplace(&name, *expression, "");
  return name.empty() ? std::string(frame) : name;
}

}  // namespace pe::folded

namespace pe::flamediff {
namespace {

using painting::kRoot;
using painting::NodeId;
using painting::ProfileUnion;

/// The runs of one side.
struct RunRange {
  std::size_t first, last;
};

/// Returns the count of a node, summed over the runs of a side.
double total_of(const ProfileUnion& all, RunRange side, NodeId node) {
  double sum = 0;
  for (std::size_t i = side.first; i < side.last; ++i)
    sum += all.profiles[i].total[node].as_double();
  return sum;
}

/// Does a root frame have stacks of its own?  Then it is a function, not the name of a program.
bool has_own_stacks(const ProfileUnion& all, NodeId node) {
  return std::ranges::any_of(all.profiles,
                             [node](const auto& profile) { return !profile.self[node].is_zero(); });
}

/// Returns the only root frame with a good part of `side` that `other` lacks, and that calls
/// others.  Returns kRoot if there is none, or several.
NodeId only_program(const ProfileUnion& all, RunRange side, RunRange other) {
  constexpr double kLeastShare = 0.05;
  const double least = kLeastShare * total_of(all, side, kRoot);
  NodeId found = kRoot;
  for (NodeId node = kRoot + 1; node < all.tree.size(); node = all.tree.subtree_end(node)) {
    const double total = total_of(all, side, node);
    if (total == 0 || total < least || total_of(all, other, node) > 0)
      continue;
    if (found != kRoot || has_own_stacks(all, node))
      return kRoot;
    found = node;
  }
  return found;
}

/// Do both frames call a function of the same name?
bool have_common_callee(const painting::CallTree& tree, NodeId a, NodeId b) {
  std::set<std::string_view> names;
  for (NodeId node = a + 1; node < tree.subtree_end(a); node = tree.subtree_end(node))
    names.insert(tree.name(node));
  for (NodeId node = b + 1; node < tree.subtree_end(b); node = tree.subtree_end(node))
    if (names.contains(tree.name(node)))
      return true;
  return false;
}

/// Returns the name of a frame without a symbol, "gzip+0x..." or "[gzip]", in the renamed program.
std::string with_module(std::string_view frame, std::string_view before, std::string_view after) {
  const std::string_view start = frame.starts_with('[') ? "[" : "";
  const std::string_view rest = frame.substr(start.size());
  const bool is_of_module =
      rest.starts_with(before) &&
      (rest.substr(before.size()) == "]" || rest.substr(before.size()).starts_with("+0x"));
  if (!is_of_module)
    return std::string(frame);
  return fmt::format("{}{}{}", start, after, rest.substr(before.size()));
}

/// Returns a copy in which the outermost frame `renamed` has this `name`, also as the module
/// of frames without a symbol.  Costs as much as reading all profiles again.
ProfileUnion with_outermost(const ProfileUnion& all, NodeId renamed, std::string_view name) {
  const painting::CallTree& tree = all.tree;
  painting::TreeBuilder builder;
  std::string stack;
  std::vector<std::size_t> ends(tree.size());  // of each node's stack
  for (NodeId node = kRoot + 1; node < tree.size(); ++node) {
    const NodeId above = tree.parent(node);
    stack.resize(ends[above]);
    if (above != kRoot)
      stack += ';';
    stack += node == renamed ? std::string(name)
                             : with_module(tree.name(node), tree.name(renamed), name);
    ends[node] = stack.size();
    for (std::size_t i = 0; i < all.profiles.size(); ++i)
      if (const folded::Count count = all.profiles[i].self[node]; !count.is_zero())
        builder.add_to(i, stack, count);
  }
  return std::move(builder).finish_union(all.profiles.size());
}

/// Joins the outermost frames of both sides if they differ only because the program was renamed.
void join_outermost(std::size_t runs_before, Profiles& profiles) {
  const painting::CallTree& tree = profiles.all.tree;
  const RunRange sides[] = {{0, runs_before}, {runs_before, profiles.all.profiles.size()}};
  const NodeId before = only_program(profiles.all, sides[0], sides[1]);
  const NodeId after = only_program(profiles.all, sides[1], sides[0]);
  if (before == kRoot || after == kRoot || tree.saturated() ||
      !have_common_callee(tree, before, after))
    return;
  profiles.messages.push_back(fmt::format(
      "the root frame is {} before and {} after: compared as one frame (--no-strip: as two)",
      in_quotes(tree.name(before)), in_quotes(tree.name(after))));
  const std::string name(tree.name(after));
  profiles.all = with_outermost(profiles.all, before, name);
}

/// Returns "the profile before", with its file if there are several.
std::string side_of(std::size_t i, const Options& options) {
  const bool is_before = i < options.before.size();
  const auto& files = is_before ? options.before : options.after;
  std::string side = is_before ? "the profile before" : "the profile after";
  if (options.before.size() + options.after.size() == 2)
    return side;
  return fmt::format("{} ({})", side, input_name(files[is_before ? i : i - options.before.size()]));
}

}  // namespace

std::string stated_unit(std::span<const folded::Fact> facts) {
  if (const auto unit = std::ranges::find(facts, "unit", &folded::Fact::key); unit != facts.end())
    return unit->value;
  const auto writer = std::ranges::find(facts, "stackfold", &folded::Fact::key);
  return writer != facts.end() ? "samples" : "";
}

std::string join_units(std::span<const std::string> units, const Options& options,
                       std::vector<std::string>& messages) {
  const auto known = std::ranges::find_if_not(units, &std::string::empty);
  if (options.names_unit || known == units.end())
    return {};
  const auto first = static_cast<std::size_t>(known - units.begin());
  for (std::size_t i = first; i < units.size(); ++i)
    if (!units[i].empty() && units[i] != *known)
      throw Error(fmt::format("{} counts {}, {} {}: profiles of different units cannot be compared",
                              side_of(first, options), *known, side_of(i, options), units[i]));
  const auto without = std::ranges::find_if(units, &std::string::empty);
  if (without != units.end() && *known != "samples")
    messages.push_back(
        fmt::format("{} does not state its unit, {} counts {}: compared as {} (see --countname)",
                    side_of(static_cast<std::size_t>(without - units.begin()), options),
                    side_of(first, options), *known, *known));
  return *known;
}

namespace {

/// Do the counts divide the time on the clock (stackfold --weight elapsed)?
bool is_elapsed(std::span<const folded::Fact> facts) {
  const auto weight = std::ranges::find(facts, "weight", &folded::Fact::key);
  return weight != facts.end() && weight->value == "elapsed";
}

}  // namespace

Profiles read_profiles(const Options& options, int stdin_fd) {
  const folded::FrameRewriter rewriter("strip", options.strip, options.cuts_build_details);
  painting::TreeBuilder::Rename rename;
  if (!rewriter.is_empty())
    rename = [&rewriter](std::string_view frame) { return rewriter.rewrite(frame); };
  painting::TreeBuilder builder(rename);
  Profiles profiles;
  std::vector<std::string> files = options.before;
  files.insert(files.end(), options.after.begin(), options.after.end());
  std::vector<std::string> units;
  bool is_of_threads = true, is_of_clock = true;  // the profiles before; those after
  for (std::size_t i = 0; i < files.size(); ++i) {
    folded::FoldedReader reader(std::span<const std::string>(files).subspan(i, 1), stdin_fd);
    while (const auto line = reader.next())
      builder.add_to(i, line->stack, line->count);
    if (reader.malformed().count > 0)
      profiles.messages.push_back(reader.malformed().describe());
    units.push_back(stated_unit(reader.facts()));
    bool& is_so = i < options.before.size() ? is_of_threads : is_of_clock;
    is_so = is_so && is_elapsed(reader.facts()) == (i >= options.before.size());
  }
  if (is_of_threads && is_of_clock)
    profiles.meaning =
        "time of threads before, time on the clock after: what grew does not run in parallel";
  profiles.unit = join_units(units, options, profiles.messages);
  profiles.all = std::move(builder).finish_union(files.size());
  if (options.cuts_build_details)
    join_outermost(options.before.size(), profiles);
  return profiles;
}

}  // namespace pe::flamediff
