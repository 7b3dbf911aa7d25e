// SPDX-License-Identifier: MIT
#include "flamesvg/profile.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/string_arena.h"
#include "flamesvg/reshaper.h"
#include "folded/facts.h"
#include "folded/perl_line.h"
#include "painting/numbers.h"
#include "painting/tree/call_tree.h"
#include "painting/tree/stack_path.h"
#include "painting/tree/tree_builder.h"

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

namespace pe::flamesvg {

void reverse_frames(std::string_view stack, std::string& out) {
  stack = painting::without_empty_end(stack);
  out.clear();
  for (;;) {
    const auto separator = stack.rfind(';');
    if (separator == std::string_view::npos)
      break;
    out.append(stack.substr(separator + 1)).append(";");
    stack = stack.substr(0, separator);
  }
  out += stack;
}

void mark_wakers(std::string_view stack, std::string& out) {
  constexpr std::string_view kSeparator = ";--;";
  constexpr std::string_view kMark = "_[w]";
  std::vector<std::string_view> parts;
  for (auto end = stack.find(kSeparator); end != std::string_view::npos;
       end = stack.find(kSeparator)) {
    parts.push_back(stack.substr(0, end));
    stack.remove_prefix(end + kSeparator.size());
  }
  parts.push_back(stack);
  while (parts.size() > 1 && parts.back().empty())
    parts.pop_back();
  out.assign(parts.front()).append(kSeparator);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::string_view part = parts[i];
    for (auto end = part.find(';'); end != std::string_view::npos; end = part.find(';')) {
      out.append(part.substr(0, end)).append(kMark).append(";");
      part.remove_prefix(end + 1);
    }
    out.append(part).append(kMark);
    if (i + 1 < parts.size())
      out += kSeparator;
  }
}

namespace {

using folded::Columns;
using folded::FoldedLine;
using painting::CallTree;
using painting::Differences;
using painting::NeighbourBuilder;

/// Reads lines from the files, rewrites their stacks and adds them to a tree.
class Stacks {
 public:
  Stacks(std::span<const std::string> files, const Options& options, int stdin_fd)
      : options_(options),
        reader_(files, stdin_fd, std::nullopt),
        takes_times_(options.order != Order::kInput) {}

  /// Returns the next line, reversed with --reverse.
  std::optional<FoldedLine> next() {
    auto line = reader_.next();
    if (!line && !options_.lost.is_zero() && !is_lost_told_) {
      is_lost_told_ = true;
      time_ns_.reset();
      return FoldedLine{.stack = kLostName, .count = options_.lost};
    }
    if (line && takes_times_)
      take_time(*line);
    if (line && options_.reverse) {
      reverse_frames(line->stack, reversed_);
      line->stack = reversed_;
    }
    return line;
  }

  /// The time of the line that next() returned last, in nanoseconds.
  [[nodiscard]] std::optional<std::uint64_t> time_ns() const { return time_ns_; }

  /// Returns what the builder returns.
  template <typename Builder>
  auto add(const FoldedLine& line, Builder& builder) {
    if (options_.palette != painting::Palette::kChain)
      return builder.add(line.stack, line.count, line.before);
    mark_wakers(line.stack, chain_);
    return builder.add(chain_, line.count, line.before);
  }

  [[nodiscard]] const folded::MalformedLines& malformed() const { return reader_.malformed(); }
  [[nodiscard]] std::vector<folded::Fact> facts() const {
    return {reader_.facts().begin(), reader_.facts().end()};
  }

 private:
  /// Moves the time from the line's root to time_ns_.  The first line decides whether lines have
  /// times; a line without its time is of no known time.
  void take_time(FoldedLine& line) {
    const std::size_t end = std::min(line.stack.find(';'), line.stack.size());
    time_ns_ = line.before ? std::nullopt : folded::parse_time_root(line.stack.substr(0, end));
    if (time_ns_)
      line.stack.remove_prefix(std::min(end + 1, line.stack.size()));
    takes_times_ = time_ns_ || !is_first_;
    is_first_ = false;
  }

  const Options& options_;
  folded::FoldedReader reader_;
  bool is_lost_told_ = false;
  bool takes_times_, is_first_ = true;
  std::optional<std::uint64_t> time_ns_;
  std::string reversed_, chain_;
};

/// Builds a tree of lines as they come, for an x-axis that is time.
CallTree build_of_lines(Stacks& stacks) {
  NeighbourBuilder builder(Differences::kInclusive);
  while (const auto line = stacks.next())
    stacks.add(*line, builder);
  return std::move(builder).finish();
}

/// Reads all lines, reversed with --reverse.
std::vector<std::string_view> perl_lines(folded::FoldedReader& reader, const Options& options,
                                         StringArena& texts) {
  std::vector<std::string_view> lines;
  std::string reversed;
  while (const auto line = reader.next()) {
    std::string_view text = reader.text();
    if (options.reverse) {
      const folded::PerlLineParts parts = folded::perl_parts(text, *line);
      reverse_frames(line->stack, reversed);
      for (const std::string_view count : {parts.before, parts.count})
        if (!count.empty())
          reversed.append(" ").append(count);
      text = reversed;
    }
    lines.push_back(texts.store(text));
  }
  return lines;
}

/// flamegraph.pl sorts whole lines, and merges neighbours.
Profile read_as_perl(std::span<const std::string> files, const Options& options, int stdin_fd) {
  folded::FoldedReader reader(files, stdin_fd, Columns::kPerl);
  StringArena texts;
  std::vector<std::string_view> lines = perl_lines(reader, options, texts);
  if (options.order != Order::kInput)
    std::sort(lines.begin(), lines.end());
  NeighbourBuilder builder(Differences::kPerl);
  PerlFrames frames;
  std::string chain;
  for (const std::string_view text : lines) {
    auto line = folded::parse_perl_line(text, true);  // again: --reverse may have moved numbers
    if (!line)
      continue;
    const painting::PerlCounts counts = painting::perl_counts(text, *line);
    if (options.palette == painting::Palette::kChain) {
      mark_wakers(line->stack, chain);
      line->stack = chain;
    }
    builder.add(line->stack, line->count, line->before);
    frames.add(line->stack, counts);
  }
  frames.finish();
  return {.tree = std::move(builder).finish(),
          .times = {},
          .malformed = reader.malformed(),
          .facts = {},
          .perl = std::move(frames)};
}

CallTree build_by_name(Stacks& stacks, painting::Times& times) {
  painting::TreeBuilder builder;
  while (const auto line = stacks.next()) {
    const painting::NodeId node = stacks.add(*line, builder);
    if (const auto time_ns = stacks.time_ns())
      times.add(*time_ns, node, line->count);
  }
  std::vector<painting::NodeId> nodes;
  CallTree tree = std::move(builder).finish(nodes);
  times.renumber(nodes);
  return tree;
}

CallTree reshape(CallTree tree, const Options& options) {
  if (options.folds_recursion)
    tree = painting::Reshaper::without_recursion(std::move(tree));
  if (options.max_depth)
    tree = painting::Reshaper::limited(std::move(tree), *options.max_depth);
  if (options.order == Order::kWidth)
    tree = painting::Reshaper::by_width(std::move(tree));
  return tree;
}

}  // namespace

Profile read_profile(std::span<const std::string> files, const Options& options, int stdin_fd) {
  if (options.is_perl)
    return read_as_perl(files, options, stdin_fd);
  Stacks stacks(files, options, stdin_fd);
  painting::Times times;
  CallTree tree =
      options.order != Order::kInput ? build_by_name(stacks, times) : build_of_lines(stacks);
  if (times.empty()) {
    tree = reshape(std::move(tree), options);
  } else {
    const painting::Counterparts shape(tree);
    tree = reshape(std::move(tree), options);
    times.renumber(shape.in(tree));
  }
  return {.tree = std::move(tree),
          .times = std::move(times),
          .malformed = stacks.malformed(),
          .facts = stacks.facts(),
          .perl = {}};
}

}  // namespace pe::flamesvg
