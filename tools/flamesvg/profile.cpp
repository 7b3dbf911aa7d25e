// SPDX-License-Identifier: MIT
#include "flamesvg/profile.h"

#include <optional>
#include <utility>

#include "flamesvg/perl.h"
#include "flamesvg/stack_text.h"
#include "folded/ordered_stacks.h"
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
                options.is_perl ? std::optional(Columns::kPerl) : std::optional<Columns>()) {}

  /// Returns the next line, reversed with --reverse.
  std::optional<FoldedLine> next() {
    auto line = reader_.next();
    if (!line && !options_.lost.is_zero() && !is_lost_told_) {
      is_lost_told_ = true;
      return FoldedLine{.stack = kLostName, .count = options_.lost};
    }
    if (line && options_.reverse) {
      reverse_frames(line->stack, reversed_);
      line->stack = reversed_;
      if (options_.is_perl)
        line = perl_reversed(*line, rewritten_);
    }
    return line;
  }

  template <typename Builder>
  void add(const FoldedLine& line, Builder& builder) {
    if (options_.palette == picture::Palette::kChain) {
      mark_wakers(line.stack, chain_);
      builder.add(chain_, line.count, line.before);
    } else {
      builder.add(line.stack, line.count, line.before);
    }
  }

  [[nodiscard]] const folded::MalformedLines& malformed() const { return reader_.malformed(); }
  [[nodiscard]] std::vector<folded::Fact> facts() const {
    return {reader_.facts().begin(), reader_.facts().end()};
  }

 private:
  const Options& options_;
  folded::FoldedReader reader_;
  bool is_lost_told_ = false;
  std::string reversed_, rewritten_, chain_;
};

template <typename Lines, typename Builder>
CallTree build(Lines& lines, Stacks& stacks, Builder builder) {
  while (const auto line = lines.next())
    stacks.add(*line, builder);
  return std::move(builder).finish();
}

CallTree build(Stacks& stacks, const Options& options) {
  const auto differences = options.is_perl ? Differences::kPerl : Differences::kInclusive;
  if (options.order == Order::kInput)
    return build(stacks, stacks, NeighbourBuilder(differences));
  if (!options.is_perl)
    return build(stacks, stacks, picture::TreeBuilder());
  // flamegraph.pl sorts whole lines and merges neighbours.
  folded::OrderedStacks ordered(folded::StackOrder::kLines);
  while (const auto line = stacks.next())
    ordered.add(*line);
  folded::OrderedStacks::Reader in_order(ordered);
  return build(in_order, stacks, NeighbourBuilder(differences));
}

}  // namespace

Profile read_profile(std::span<const std::string> files, const Options& options, int stdin_fd) {
  Stacks stacks(files, options, stdin_fd);
  CallTree tree = build(stacks, options);
  if (options.folds_recursion)
    tree = picture::Reshaper::without_recursion(std::move(tree));
  if (options.max_depth)
    tree = picture::Reshaper::limited(std::move(tree), *options.max_depth);
  if (options.order == Order::kWidth)
    tree = picture::Reshaper::by_width(std::move(tree));
  return {.tree = std::move(tree), .malformed = stacks.malformed(), .facts = stacks.facts()};
}

}  // namespace pe::flamesvg
