// SPDX-License-Identifier: MIT
#include "stackfold/folded_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>

namespace pe::folded {
namespace {

constexpr StackId kNoStack = std::numeric_limits<StackId>::max();

/// Counts the frames that two stacks have in common, from the root on.
std::size_t common_frames(std::span<const FrameId> a, std::span<const FrameId> b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

/// Writes sorted lines.  Builds the text of each stack from that of the line before, below the same
/// root.
class LineWriter {
 public:
  LineWriter(const FrameTable& table, Output& out) : table_(table), out_(out) {}

  /// Puts a root below the frames of the next lines.
  void set_root(std::string_view root) {
    keep(0);
    stack_ = root;
    root_size_ = root.size();
  }
  void write(std::span<const FrameId> frames, Count count) {
    make_stack(frames);
    append_folded_line(block_, {.stack = stack_, .count = count});
    flush_full();
  }
  void write_large(std::span<const FrameId> frames, double count) {
    make_stack(frames);
    fmt::format_to(std::back_inserter(block_), "{} {:.15g}\n", stack_, count);
    flush_full();
  }
  void flush() {
    out_.write(block_);
    block_.clear();
  }

 private:
  void make_stack(std::span<const FrameId> frames) {
    keep(common_frames(frames, last_));
    for (const FrameId frame : frames.subspan(last_.size())) {
      if (!last_.empty() || root_size_ > 0)
        stack_ += ';';
      stack_ += table_[frame];
      last_.push_back(frame);
      ends_.push_back(stack_.size());
    }
  }
  void flush_full() {
    constexpr std::size_t kBlockBytes = 64UL * 1024;
    if (block_.size() >= kBlockBytes)
      flush();
  }
  /// Cuts the current stack down to its first `count` frames.
  void keep(std::size_t count) {
    last_.resize(count);
    ends_.resize(count);
    stack_.resize(count == 0 ? root_size_ : ends_.back());
  }

  const FrameTable& table_;
  Output& out_;
  std::vector<FrameId> last_;      ///< frames of stack_
  std::vector<std::size_t> ends_;  ///< the end of each frame in stack_
  std::string stack_;
  std::size_t root_size_ = 0;
  std::string block_;
};

/// Orders frames as they appear in a line: followed by a ';', or at the end.
///
/// No frame's text holds a ';', so no frame with its terminator is a prefix of
/// another.  Comparing stacks frame by frame thus gives the order of their texts.
class TokenRanks {
 public:
  explicit TokenRanks(const FrameTable& table) : ranks_(2 * table.size()) {
    std::vector<std::uint32_t> tokens(
        ranks_.size());  // twice the frame's number, plus 1 at the end
    std::iota(tokens.begin(), tokens.end(), 0U);
    std::sort(tokens.begin(), tokens.end(), [&table](std::uint32_t a, std::uint32_t b) {
      return is_before({table[a / 2], a % 2 != 0}, {table[b / 2], b % 2 != 0});
    });
    for (std::uint32_t rank = 0; rank < tokens.size(); ++rank)
      ranks_[tokens[rank]] = rank;
  }
  [[nodiscard]] std::uint32_t of(FrameId frame, bool is_last) const {
    return ranks_[2 * std::size_t{frame} + (is_last ? 1 : 0)];
  }

 private:
  struct Token {
    std::string_view text;
    bool is_last;
  };
  static bool is_before(const Token& a, const Token& b) {
    const std::size_t common = std::min(a.text.size(), b.text.size());
    if (const int order = a.text.compare(0, common, b.text, 0, common); order != 0)
      return order < 0;
    const auto next = [common](const Token& token) {
      constexpr int kEnd = -1;
      if (common < token.text.size())
        return int{static_cast<unsigned char>(token.text[common])};
      return token.is_last ? kEnd : int{';'};
    };
    return next(a) < next(b);
  }

  std::vector<std::uint32_t> ranks_;
};

/// A node with all that is below it, or only the stack that ends in it.
struct Item {
  std::uint32_t rank;  ///< of the node's first frame, among its siblings
  painting::StackTree::Node node;
  bool is_end;
};

/// Lists the children of nodes in the order of lines.
class OrderedChildren {
 public:
  OrderedChildren(const FrameTable& table, const painting::StackTree& tree,
                  std::span<const StackId> stack_of)
      : ranks_(table), tree_(tree), children_(tree), stack_of_(stack_of) {}

  /// Appends the children of a node, the last line first.
  void push(painting::StackTree::Node node, std::vector<Item>& items) const {
    const auto begin = static_cast<std::ptrdiff_t>(items.size());
    for (auto child = children_.first(node); child != children_.kNone;
         child = children_.next(child))
      push_one(child, items);
    std::sort(items.begin() + begin, items.end(),
              [](const Item& a, const Item& b) { return a.rank > b.rank; });
  }

 private:
  /// A stack that ends in the node's first frame may be before other children of the parent, and
  /// those that continue after them.
  void push_one(painting::StackTree::Node node, std::vector<Item>& items) const {
    const auto run = tree_.run(node);
    const bool is_one = run.size() == 1;
    if (is_one && stack_of_[node] != kNoStack)
      items.push_back({.rank = ranks_.of(run[0], true), .node = node, .is_end = true});
    if (!is_one || children_.first(node) != children_.kNone)
      items.push_back({.rank = ranks_.of(run[0], false), .node = node, .is_end = false});
  }

  TokenRanks ranks_;
  const painting::StackTree& tree_;
  painting::StackTreeChildren children_;
  std::span<const StackId> stack_of_;
};

}  // namespace

StackId FoldedCounts::add(Frames frames, Count count) {
  const Node end = tree_.add(frames);
  while (stack_of_.size() < tree_.size())
    stack_of_.push_back(kNoStack);
  StackId& stack = stack_of_[end];
  if (stack != kNoStack) {
    add_to(stack, count);
  } else {
    stack = static_cast<StackId>(counts_.size());
    counts_.push_back(count);
    ends_.push_back(end);
  }
  return stack;
}

void FoldedCounts::add_to(StackId stack, Count count) {
  Count& sum = counts_[stack];
  const Count before = sum;
  if (!keeps_large_)
    saturated_ = !sum.add(count) || saturated_;
  else if (const auto large = large_.find(stack); large != large_.end())
    large->second += count.as_double();
  else if (!sum.add(count))
    large_[stack] = before.as_double() + count.as_double();
}

void FoldedCounts::add_large(Frames frames, double count) {
  const StackId stack = add(frames, {});
  large_.try_emplace(stack, counts_[stack].as_double()).first->second += count;
}

void FoldedCounts::add_at(std::uint64_t time_ns, Frames frames, Count count) {
  const StackId stack = add(frames, count);
  if (timeline_)
    timeline_->add(time_ns, stack, count);
}

void FoldedCounts::add_span(std::uint64_t begin_ns, std::uint64_t end_ns, Frames frames) {
  timeline_->add_span(begin_ns, end_ns, add(frames, timeline_->count_of(end_ns - begin_ns)));
}

void FoldedCounts::add(std::string_view stack, Count count) {
  add(text_.follow(stack,
                   [this](auto, std::string_view frame) { return frame_table_.intern(frame); }),
      count);
}

void FoldedCounts::set_timeline(Timeline timeline) { timeline_ = std::move(timeline); }

void FoldedCounts::add_divided(const FoldedCounts& other, std::uint64_t divisor) {
  other.for_each([&](Frames frames, Count of_other) {
    const std::uint64_t all = of_other.whole;
    const std::uint64_t rest = all % divisor;
    Count count{.whole = all / divisor + (rest >= divisor - rest ? 1 : 0)};
    if (count.whole == 0)  // a small count must neither vanish nor grow to 1
      count.billionths = static_cast<std::uint32_t>(rest * Count::kOne / divisor);
    add(frames, count);
  });
  saturated_ = saturated_ || other.saturated_;
}

/// Calls `visit` with the number of each stack, in the order of lines.  A list of items replaces
/// recursion, which could go as deep as a stack of the input.
template <typename Visit>
void FoldedCounts::visit_sorted(Visit&& visit) {
  if (empty())
    return;
  tree_.drop_index();
  const OrderedChildren children(frame_table_, tree_, stack_of_.all());
  const auto visit_end = [&](Node node) {
    if (stack_of_[node] != kNoStack)
      visit(stack_of_[node]);
  };
  visit_end(painting::StackTree::kTop);
  std::vector<Item> left;
  children.push(painting::StackTree::kTop, left);
  while (!left.empty()) {
    const Item item = left.back();
    left.pop_back();
    if (item.is_end || tree_.run(item.node).size() > 1)
      visit_end(item.node);
    if (!item.is_end)
      children.push(item.node, left);
  }
}

void FoldedCounts::write(Output& out) {
  LineWriter lines(frame_table_, out);
  std::vector<FrameId> frames;
  if (!timeline_) {
    visit_sorted([&](StackId stack) {
      copy_frames(stack, frames);
      const auto large = large_.find(stack);
      if (large == large_.end())
        lines.write(frames, counts_[stack]);
      else
        lines.write_large(frames, large->second);
    });
  } else {
    std::vector<std::uint32_t> rank_of(size());
    visit_sorted([&, rank = 0U](StackId stack) mutable { rank_of[stack] = rank++; });
    std::optional<std::int32_t> last_step;
    timeline_->visit(rank_of, [&](std::int32_t step, StackId stack, Count count) {
      if (step != last_step)
        lines.set_root(timeline_->label(step));
      last_step = step;
      copy_frames(stack, frames);
      lines.write(frames, count);
    });
  }
  lines.flush();
}

}  // namespace pe::folded
