// SPDX-License-Identifier: MIT
#include "flamesvg/profile.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "flamesvg/perl.h"
#include "flamesvg/stack_text.h"
#include "folded/ordered_stacks.h"
#include "folded/time_root.h"
#include "picture/tree/counterparts.h"
#include "picture/tree/neighbour_builder.h"
#include "picture/tree/reshaper.h"
#include "picture/tree/tree_builder.h"

namespace pe::flamesvg {
namespace {

using folded::Columns;
using folded::FoldedLine;
using picture::CallTree;
using picture::Differences;
using picture::NeighbourBuilder;

/// Reads lines from the files, rewrites their stacks and adds them to a tree.
class Stacks {
 public:
  Stacks(std::span<const std::string> files, const Options& options, int stdin_fd)
      : options_(options),
        reader_(files, stdin_fd,
                options.is_perl ? std::optional(Columns::kPerl) : std::optional<Columns>()),
        takes_times_(!options.is_perl && options.order != Order::kInput) {}

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
      if (options_.is_perl)
        line = perl_reversed(*line, rewritten_);
    }
    return line;
  }

  /// The time of the line that next() returned last, in nanoseconds.
  [[nodiscard]] std::optional<std::uint64_t> time_ns() const { return time_ns_; }

  /// Returns what the builder returns.
  template <typename Builder>
  auto add(const FoldedLine& line, Builder& builder) {
    if (options_.palette != picture::Palette::kChain)
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
  std::string reversed_, rewritten_, chain_;
};

template <typename Lines, typename Builder>
CallTree build(Lines& lines, Stacks& stacks, Builder builder) {
  while (const auto line = lines.next())
    stacks.add(*line, builder);
  return std::move(builder).finish();
}

/// Builds a tree of lines as they come, for an x-axis that is not the order of names.
CallTree build_of_lines(Stacks& stacks, const Options& options) {
  const auto differences = options.is_perl ? Differences::kPerl : Differences::kInclusive;
  if (options.order == Order::kInput)
    return build(stacks, stacks, NeighbourBuilder(differences));
  // flamegraph.pl sorts whole lines and merges neighbours.
  folded::OrderedStacks ordered(folded::StackOrder::kLines);
  while (const auto line = stacks.next())
    ordered.add(*line);
  folded::OrderedStacks::Reader in_order(ordered);
  return build(in_order, stacks, NeighbourBuilder(differences));
}

CallTree build_by_name(Stacks& stacks, picture::Times& times) {
  picture::TreeBuilder builder;
  while (const auto line = stacks.next()) {
    const picture::NodeId node = stacks.add(*line, builder);
    if (const auto time_ns = stacks.time_ns())
      times.add(*time_ns, node, line->count);
  }
  std::vector<picture::NodeId> nodes;
  CallTree tree = std::move(builder).finish(nodes);
  times.renumber(nodes);
  return tree;
}

CallTree reshape(CallTree tree, const Options& options) {
  if (options.folds_recursion)
    tree = picture::Reshaper::without_recursion(std::move(tree));
  if (options.max_depth)
    tree = picture::Reshaper::limited(std::move(tree), *options.max_depth);
  if (options.order == Order::kWidth)
    tree = picture::Reshaper::by_width(std::move(tree));
  return tree;
}

}  // namespace

Profile read_profile(std::span<const std::string> files, const Options& options, int stdin_fd) {
  Stacks stacks(files, options, stdin_fd);
  const bool is_by_name = !options.is_perl && options.order != Order::kInput;
  picture::Times times;
  CallTree tree = is_by_name ? build_by_name(stacks, times) : build_of_lines(stacks, options);
  if (times.empty()) {
    tree = reshape(std::move(tree), options);
  } else {
    const picture::Counterparts shape(tree);
    tree = reshape(std::move(tree), options);
    times.renumber(shape.in(tree));
  }
  return {.tree = std::move(tree),
          .times = std::move(times),
          .malformed = stacks.malformed(),
          .facts = stacks.facts()};
}

}  // namespace pe::flamesvg
