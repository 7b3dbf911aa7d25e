// SPDX-License-Identifier: MIT
#include "painting/embed.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/io/compression.h"
#include "painting/svg/escape.h"
#include "painting/times.h"

namespace pe::painting {
namespace {

constexpr unsigned kFiner = 4;       // decimals: far finer than a tooltip shows
constexpr double kMostUnits = 1e15;  // the script's numbers represent it exactly

bool are_whole(const CallTree& tree, double per_one) {
  for (NodeId node = kRoot; node < tree.size(); ++node) {
    const double units = tree.delta(node).value_or(0) * per_one;
    if (std::abs(units - std::nearbyint(units)) > 1e-6)
      return false;
  }
  return true;
}

}  // namespace

DeltaCodes::DeltaCodes(const CallTree& tree, const Ticks& ticks, bool negate)
    : largest_(tree.largest_delta()),
      negate_(negate),
      decimals_(ticks.decimals()),
      per_one_(std::pow(10, decimals_)) {
  if (!tree.is_differential())
    return;
  if (!are_whole(tree, per_one_))
    decimals_ += kFiner;
  while (decimals_ > 0 && largest_ * std::pow(10, decimals_) > kMostUnits)
    --decimals_;
  per_one_ = std::pow(10, decimals_);
}

std::uint64_t DeltaCodes::units(double size) const {
  return static_cast<std::uint64_t>(std::llround(std::fmin(std::abs(size) * per_one_, 9e18)));
}

std::uint64_t DeltaCodes::code(std::optional<double> delta) const {
  if (!delta)
    return 0;
  const double shown = negate_ ? -*delta : *delta;
  const std::uint64_t size = units(shown);
  return shown < 0 && size > 0 ? 2 * size : 1 + 2 * size;
}

namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kWithDifferences = 1;
constexpr std::uint64_t kWithSpaces = 2;
constexpr std::uint64_t kCompared = 4;
constexpr std::uint64_t kWithRepeats = 8;
constexpr std::uint64_t kReversed = 16;
constexpr std::uint64_t kTimesLimit = 4;  ///< times the limit of the tree

/// A node in the form in which it is written.
struct Packed {
  std::uint32_t name = 0;  ///< name_id() in the tree; kGap: a run of left-out neighbours
  std::uint32_t children = 0;
  std::uint64_t self = 0;  ///< ticks
  NodeId node = kRoot;     ///< in the tree; of a gap, the first node that it replaces
};
constexpr std::uint32_t kGap = std::numeric_limits<std::uint32_t>::max();

/// Histogram of totals, to count the nodes that reach a threshold.  It is exact below kExact;
/// larger totals share buckets, 64 for each power of two.
class Sizes {
 public:
  void add(std::uint64_t total) { ++counts_[bucket(total)]; }

  /// Returns the smallest threshold, at least 1, that at most `nodes` nodes reach.
  [[nodiscard]] std::uint64_t threshold(std::uint64_t nodes) const {
    std::uint64_t reached = 0;
    for (std::size_t at = counts_.size(); at-- > 1;) {
      reached += counts_[at];
      if (reached > nodes)
        return at + 1 < counts_.size() ? lower_bound(at + 1)
                                       : std::numeric_limits<std::uint64_t>::max();
    }
    return 1;
  }

 private:
  static constexpr std::uint64_t kExact = 4096;  // 2^12
  static constexpr unsigned kSteps = 64;         // 2^6
  static std::size_t bucket(std::uint64_t total) {
    if (total < kExact)
      return total;
    const auto shift = static_cast<unsigned>(std::bit_width(total)) - 7;
    return kExact + (shift - 6) * kSteps + (total >> shift) - kSteps;
  }
  static std::uint64_t lower_bound(std::size_t bucket) {
    if (bucket < kExact)
      return bucket;
    const std::size_t above = bucket - kExact;
    return (above % kSteps + kSteps) << (above / kSteps + 6);
  }

  std::array<std::uint32_t, kExact + (64 - 12) * kSteps> counts_{};
};

/// The nodes that reach a threshold, depth first, gaps included.
class Selection {
 public:
  Selection(const CallTree& tree, const Ticks& ticks, std::uint64_t threshold)
      : places(tree.size()), tree_(tree), ticks_(ticks) {
    const auto nodes = static_cast<NodeId>(tree.size());
    add(kRoot);
    for (NodeId node = kRoot + 1; node < nodes;) {
      while (open_.back().subtree_end <= node)
        open_.pop_back();
      const std::uint64_t total = ticks.of(tree.total(node));
      const bool is_kept = total >= threshold;
      const std::uint64_t space = take_place(node, total);
      if (is_kept) {
        open_.back().ends_in_gap = false;
        ++packed[open_.back().packed].children;
        add(node);
      } else {
        const std::uint32_t place = leave_out(node, total, space > 0);
        std::fill(places.begin() + node, places.begin() + tree.subtree_end(node), place);
      }
      if (tree.has_starts() && (spaces.size() < packed.size()))
        spaces.push_back(space);
      node = is_kept ? node + 1 : tree.subtree_end(node);
    }
  }

  std::vector<Packed> packed;
  std::vector<std::uint32_t> places;  ///< for each node of the tree, its index in `packed`
  std::vector<std::uint64_t> spaces;  ///< left of each packed node; empty if the tree has no starts
  std::uint64_t left_out = 0;

 private:
  struct Open {
    NodeId subtree_end;
    std::uint32_t packed;
    bool ends_in_gap;
    std::uint64_t
        next_start;  ///< of the next child if no space precedes it; only if the tree has starts
  };

  void add(NodeId node) {
    places[node] = static_cast<std::uint32_t>(packed.size());
    if (tree_.has_starts() && node == kRoot)
      spaces.push_back(0);
    open_.push_back({.subtree_end = tree_.subtree_end(node),
                     .packed = static_cast<std::uint32_t>(packed.size()),
                     .ends_in_gap = false,
                     .next_start = tree_.has_starts() ? ticks_.of(tree_.start(node)) : 0});
    packed.push_back(
        {.name = tree_.name_id(node), .self = ticks_.of(tree_.self(node)), .node = node});
  }

  /// Returns the space between `node` and its left neighbour on the same caller.
  std::uint64_t take_place(NodeId node, std::uint64_t total) {
    if (!tree_.has_starts() || total == 0)
      return 0;
    std::uint64_t& next_start = open_.back().next_start;
    const std::uint64_t start = std::max(next_start, ticks_.of(tree_.start(node)));
    const std::uint64_t space = start - next_start;
    next_start = saturated_sum(start, total);
    return space;
  }

  /// Returns the index of the node that represents it: a gap, or if it counts nothing its caller.
  std::uint32_t leave_out(NodeId node, std::uint64_t total, bool has_space) {
    Open& above = open_.back();
    if (total == 0)
      return above.packed;
    left_out += tree_.subtree_end(node) - node;
    if (above.ends_in_gap && !has_space) {  // the last packed node is that gap
      packed.back().self = saturated_sum(packed.back().self, total);
    } else {
      above.ends_in_gap = true;
      ++packed[above.packed].children;
      packed.push_back({.name = kGap, .self = total, .node = node});
    }
    return static_cast<std::uint32_t>(packed.size() - 1);
  }

  const CallTree& tree_;
  const Ticks& ticks_;
  std::vector<Open> open_;
};

/// Appends the lowest bytes of all values, then the next bytes, and so on: each position has few
/// different bytes.  `limit` is above all values.
void append_planes(std::string& out, const std::vector<std::uint32_t>& values, std::size_t limit) {
  for (unsigned shift = 0; shift == 0 || (limit - 1) >> shift != 0; shift += 8) {
    const std::size_t start = out.size();
    out.resize(start + values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      out[start + i] = static_cast<char>(values[i] >> shift);
  }
}

/// The names that a selection uses, the most frequent first.  Rank 0 is the name of gaps.
class Names {
 public:
  Names(const CallTree& tree, const std::vector<Packed>& nodes) : ranks_(tree.name_count(), 0) {
    std::vector<std::uint32_t> uses(tree.name_count());
    for (const Packed& node : nodes)
      if (node.name != kGap)
        ++uses[node.name];
    for (std::uint32_t name = 0; name < uses.size(); ++name)
      if (uses[name] > 0)
        order_.push_back(name);  // NOLINT(performance-inefficient-vector-operation): few of many
    std::ranges::stable_sort(order_, [&](auto a, auto b) { return uses[a] > uses[b]; });  // NOLINT
    for (std::uint32_t rank = 0; rank < order_.size(); ++rank)
      ranks_[order_[rank]] = rank + 1;
  }

  [[nodiscard]] std::size_t size() const noexcept { return order_.size() + 1; }
  [[nodiscard]] std::uint32_t rank(std::uint32_t name) const {
    return name == kGap ? 0 : ranks_[name];
  }

  void append_texts(std::string& out, const CallTree& tree) const {
    std::string texts = "\n";
    for (const std::uint32_t name : order_) {
      append_clean(texts, tree.name_text(name));
      texts += '\n';
    }
    append_leb128(out, texts.size());
    out += texts;
  }

  void append_colors(std::string& out, std::span<const Rgb> colors) const {
    const auto packed = [](Rgb c) {
      return static_cast<std::uint32_t>(c.r << 16U | c.g << 8U | c.b);
    };
    std::vector<std::uint32_t> different;
    different.reserve(order_.size());
    for (const std::uint32_t name : order_)
      different.push_back(packed(colors[name]));
    std::vector<std::uint32_t> of_names = different;
    std::ranges::sort(different);
    different.erase(std::unique(different.begin(), different.end()), different.end());
    append_leb128(out, different.size());
    for (const std::uint32_t color : different)
      for (const unsigned shift : {16U, 8U, 0U})
        out += static_cast<char>(color >> shift);
    for (std::uint32_t& color : of_names)
      color = static_cast<std::uint32_t>(std::ranges::lower_bound(different, color) -
                                         different.begin());
    append_planes(out, of_names, different.size());
  }

 private:
  std::vector<std::uint32_t> order_;  ///< numbers in the tree, by rank
  std::vector<std::uint32_t> ranks_;  ///< by number in the tree
};

void append_nodes(std::string& out, const std::vector<Packed>& nodes, const Names& names) {
  const auto shape_part = [](std::uint64_t value) {
    return static_cast<unsigned>(std::min<std::uint64_t>(value, kEscape));
  };
  std::vector<std::uint32_t> ranks;
  ranks.reserve(nodes.size());
  std::string many_children;
  std::string large_counts;
  for (const Packed& node : nodes) {
    out += static_cast<char>(shape_part(node.children) | shape_part(node.self) << 4U);
    if (node.children >= kEscape)
      append_leb128(many_children, node.children - kEscape);
    if (node.self >= kEscape)
      append_leb128(large_counts, node.self - kEscape);
    ranks.push_back(names.rank(node.name));
  }
  append_planes(out, ranks, names.size());
  out.append(many_children).append(large_counts);
}

void append_differences(std::string& out, const CallTree& tree, const std::vector<Packed>& nodes,
                        const DeltaCodes& codes) {
  for (const Packed& node : nodes)
    append_leb128(out, node.name == kGap ? 0 : codes.code(tree.delta(node.node)));
}

std::uint64_t zigzag(double value) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(value, -1e15, 1e15)));
  return whole < 0 ? 2 * static_cast<std::uint64_t>(-whole) - 1
                   : 2 * static_cast<std::uint64_t>(whole);
}

void append_compared_head(std::string& out, const ComparedNodes& compared) {
  const double largest_whole = std::max(compared.whole_before, compared.whole_after);
  constexpr unsigned kDecimals = 3;  // wholes are sums, some divided by a few runs
  const unsigned decimals = largest_whole < 1e12 ? kDecimals : 0;
  const double per_one = decimals == kDecimals ? 1000 : 1;
  append_leb128(out, compared.dims_noise ? 1 : 0);
  append_leb128(out, zigzag(compared.largest * 1e9) / 2);
  append_leb128(out, decimals);
  constexpr double kLargest = 1.8e19;  // fits 64 bits
  for (const double whole : {compared.whole_before, compared.whole_after})
    append_leb128(out, static_cast<std::uint64_t>(std::min(whole * per_one + 0.5, kLargest)));
}

void append_compared(std::string& out, const ComparedNodes& compared,
                     const std::vector<Packed>& nodes, const Ticks& ticks) {
  for (const auto* const counts : {&compared.before, &compared.after})
    for (const Packed& node : nodes)
      append_leb128(out, node.name == kGap ? 0 : ticks.of((*counts)[node.node]));
  for (const Packed& node : nodes)
    out += node.name == kGap ? '\0' : static_cast<char>(compared.changes[node.node].noise);
  for (const Packed& node : nodes) {
    const Change& change = compared.changes[node.node];
    if (node.name == kGap || change.noise == Noise::kUnknown)
      continue;
    append_leb128(out, zigzag(change.interval.low * 1e6));
    append_leb128(out, zigzag(change.interval.high * 1e6));
  }
}

/// Returns the tree in the format of embed.h, not yet deflated.
std::string packed_tree(const CallTree& tree, const EmbedRequest& request, const Ticks& ticks,
                        std::uint64_t threshold, const Selection& selection) {
  const Names names(tree, selection.packed);
  const DeltaCodes codes(tree, ticks, request.negate);
  std::string out;
  append_leb128(out, kVersion);
  append_leb128(
      out, (tree.is_differential() ? kWithDifferences : 0) | (tree.has_starts() ? kWithSpaces : 0) |
               (request.compared != nullptr ? kCompared : 0) |
               (tree.has_repeats() ? kWithRepeats : 0) | (request.is_reversed ? kReversed : 0));
  append_leb128(out, ticks.decimals());
  append_leb128(out, names.size());
  append_leb128(out, selection.packed.size());
  append_leb128(out, ticks.of(request.whole));
  append_leb128(out, threshold);
  append_leb128(out, selection.left_out);
  if (tree.is_differential()) {
    append_leb128(out, codes.largest());
    append_leb128(out, codes.decimals());
  }
  if (request.compared != nullptr)
    append_compared_head(out, *request.compared);
  names.append_texts(out, tree);
  names.append_colors(out, request.colors);
  append_nodes(out, selection.packed, names);
  for (const std::uint64_t space : selection.spaces)
    append_leb128(out, space);
  if (tree.has_repeats())
    for (const Packed& node : selection.packed)
      append_leb128(out, node.name == kGap ? 1 : tree.repeats(node.node));
  if (tree.is_differential())
    append_differences(out, tree, selection.packed, codes);
  if (request.compared != nullptr)
    append_compared(out, *request.compared, selection.packed, ticks);
  return out;
}

std::string deflated(const std::string& packed) {
  // Level 6 makes real profiles 10 % smaller than level 1 and costs 25 ns a byte.
  constexpr std::size_t kQuicklyDone = 1'000'000;
  return deflate(packed, packed.size() < kQuicklyDone ? 6 : 1);
}

}  // namespace

EmbeddedTree embed_tree(const CallTree& tree, const EmbedRequest& request) {
  const Ticks ticks =
      request.compared == nullptr
          ? Ticks(tree, request.whole)
          : Ticks(tree, request.whole, {request.compared->before, request.compared->after});
  Sizes sizes;
  for (NodeId node = kRoot; node < tree.size(); ++node)
    sizes.add(ticks.of(tree.total(node)));

  EmbeddedTree best;
  // The size of a node is known only after deflating.  The first guess errs by up to a third.
  const double guessed_bytes = request.compared == nullptr ? 4.2 : 6;
  constexpr int kTries = 5;
  constexpr double kGoodUse = 0.7;
  double nodes = static_cast<double>(request.limit) / guessed_bytes;
  for (int i = 0; i < kTries && nodes >= 1; ++i) {
    const auto most = static_cast<std::uint64_t>(std::min(nodes, 1e18));
    const std::uint64_t threshold = sizes.threshold(most);
    const Selection selection(tree, ticks, threshold);
    std::string bytes = deflated(packed_tree(tree, request, ticks, threshold, selection));
    const std::size_t letters = (bytes.size() + 2) / 3 * 4;  // of base64
    const double use = static_cast<double>(letters) / static_cast<double>(request.limit);
    const bool fits = use <= 1;
    if (fits && bytes.size() > best.bytes.size())
      best = {.bytes = std::move(bytes),
              .smallest = ticks.count(threshold),
              .left_out = selection.left_out};
    if (fits && (use > kGoodUse || selection.left_out == 0 || i > 0))
      break;
    nodes = nodes * 0.95 / use;
  }
  if (request.times != nullptr && !best.bytes.empty()) {
    const Selection selection(tree, ticks, ticks.of(best.smallest));
    best.times = request.times->packed(selection.places, kTimesLimit * request.limit);
  }
  return best;
}

}  // namespace pe::painting
