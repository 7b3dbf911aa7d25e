// SPDX-License-Identifier: MIT
#include "flamesvg/profile.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/string_arena.h"
#include "flamesvg/counterparts.h"
#include "flamesvg/neighbour_builder.h"
#include "flamesvg/reshaper.h"
#include "flamesvg/stack_text.h"
#include "folded/perl_line.h"
#include "folded/time_root.h"
#include "painting/tree/tree_builder.h"

namespace pe::flamesvg {
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
    const folded::PerlCounts counts = folded::perl_counts(text, *line);
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
