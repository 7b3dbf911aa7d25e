// SPDX-License-Identifier: MIT
#include "stackfold/folded_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>

namespace pe::folded {
namespace {

/// Hashes two frames with each multiplication, folded to 64 bits (the mixing step of wyhash).
std::size_t hash_of(std::span<const FrameId> frames) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t hash = frames.size() * kOdd;
  __extension__ using Wide = unsigned __int128;
  for (std::size_t i = 0; i < frames.size(); i += 2) {
    const std::uint64_t second = i + 1 < frames.size() ? frames[i + 1] : 0;
    const Wide product = static_cast<Wide>(hash ^ (second << 32U | frames[i])) * kOdd;
    hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
  }
  return hash;
}

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
  /// Returns the rank of the frame at `depth`.  Two different stacks differ at a depth that both
  /// have.
  [[nodiscard]] std::uint32_t at(std::span<const FrameId> frames, std::size_t depth) const {
    return ranks_[2 * std::size_t{frames[depth]} + (depth + 1 == frames.size() ? 1 : 0)];
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

struct Item {
  std::uint32_t rank;   ///< of the frame at the current depth
  std::uint32_t stack;  ///< index of the stack
};

/// Items whose frames above `depth` are all equal.
struct Range {
  std::size_t begin, end;
  std::size_t depth;
};

}  // namespace

bool FoldedCounts::Equal::operator()(const Key& key, Index index) const {
  const Stack& stack = owner->stacks_[index];
  return key.hash == stack.hash && std::ranges::equal(key.frames, owner->frames_in(stack));
}

StackId FoldedCounts::add(Frames frames, Count count) {
  const Key key{frames, hash_of(frames)};
  const auto found = index_.find(key);
  if (found != index_.end()) {
    add_to(*found, count);
    return *found;
  }
  const auto index = static_cast<Index>(stacks_.size());
  stacks_.push_back({frames_.size(), frames.size(), key.hash, count});
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  index_.insert(index);
  return index;
}

void FoldedCounts::add_to(StackId stack, Count count) {
  Count& sum = stacks_[stack].count;
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
  large_.try_emplace(stack, stacks_[stack].count.as_double()).first->second += count;
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
  split_.clear();
  for (;;) {
    const auto end = stack.find(';');
    split_.push_back(frame_table_.intern(stack.substr(0, end)));
    if (end == std::string_view::npos)
      break;
    stack.remove_prefix(end + 1);
  }
  add(split_, count);
}

void FoldedCounts::set_timeline(Timeline timeline) { timeline_ = std::move(timeline); }

void FoldedCounts::add_divided(const FoldedCounts& other, std::uint64_t divisor) {
  for (const Stack& stack : other.stacks_) {
    const std::uint64_t all = stack.count.whole;
    const std::uint64_t rest = all % divisor;
    Count count{.whole = all / divisor + (rest >= divisor - rest ? 1 : 0)};
    if (count.whole == 0)  // a small count must neither vanish nor grow to 1
      count.billionths = static_cast<std::uint32_t>(rest * Count::kOne / divisor);
    add(other.frames_in(stack), count);
  }
  saturated_ = saturated_ || other.saturated_;
}

/// Sorts by the frame at one depth, then sorts each range of equal frames by the next depth.
/// A list of ranges replaces recursion, which could go as deep as a stack of the input.
std::vector<FoldedCounts::Index> FoldedCounts::sorted() const {
  const TokenRanks ranks(frame_table_);
  std::vector<Item> items;
  items.reserve(stacks_.size());
  for (Index index = 0; index < stacks_.size(); ++index)
    items.push_back({0, index});
  std::vector<Range> left{{0, items.size(), 0}};
  while (!left.empty()) {
    const Range range = left.back();
    left.pop_back();
    const auto part = std::span(items).subspan(range.begin, range.end - range.begin);
    for (Item& item : part)
      item.rank = ranks.at(frames_in(stacks_[item.stack]), range.depth);
    if (!std::ranges::is_sorted(part, {}, &Item::rank))  // most stacks have the same frame here
      std::ranges::sort(part, {}, &Item::rank);
    for (std::size_t begin = 0, end = 0; begin < part.size(); begin = end) {
      while (end < part.size() && part[end].rank == part[begin].rank)
        ++end;
      if (end - begin > 1)
        left.push_back({range.begin + begin, range.begin + end, range.depth + 1});
    }
  }
  std::vector<Index> order(items.size());
  std::ranges::transform(items, order.begin(), &Item::stack);
  return order;
}

void FoldedCounts::write(Output& out) {
  LineWriter lines(frame_table_, out);
  const std::vector<Index> order = sorted();
  if (!timeline_) {
    for (const Index index : order) {
      const auto large = large_.find(index);
      if (large == large_.end())
        lines.write(frames_in(stacks_[index]), stacks_[index].count);
      else
        lines.write_large(frames_in(stacks_[index]), large->second);
    }
  } else {
    std::vector<std::uint32_t> rank_of(order.size());
    for (std::uint32_t rank = 0; rank < order.size(); ++rank)
      rank_of[order[rank]] = rank;
    std::optional<std::int32_t> last_step;
    timeline_->visit(rank_of, [&](std::int32_t step, StackId stack, Count count) {
      if (step != last_step)
        lines.set_root(timeline_->label(step));
      last_step = step;
      lines.write(frames_in(stacks_[stack]), count);
    });
  }
  lines.flush();
}

}  // namespace pe::folded
