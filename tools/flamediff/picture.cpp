// SPDX-License-Identifier: MIT
#include "flamediff/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/io/input.h"
#include "base/text.h"
#include "flamediff/comparison.h"
#include "painting/compared.h"
#include "painting/numbers.h"
#include "painting/picture.h"

namespace pe::painting {
namespace {

/// Returns for each node of `shape` whether its total is above 0.
std::vector<bool> has_total(const CallTree& shape, const std::vector<Count>& self) {
  std::vector<bool> has(shape.size());
  for (auto node = static_cast<NodeId>(shape.size()); node-- > 0;) {
    has[node] = has[node] || !self[node].is_zero();
    if (has[node])
      has[shape.parent(node)] = true;
  }
  return has;
}

}  // namespace

/// Appends the nodes that have counts.  The root of `shape` becomes `onto`, which exists already.
void Weigher::copy(const CallTree& shape, const std::vector<Count>& self, NodeId onto,
                   WeighedTree& to) {
  const std::vector<bool> has = has_total(shape, self);
  std::vector<NodeId> copies(shape.size());
  copies[kRoot] = onto;
  const auto nodes = static_cast<NodeId>(shape.size());
  for (NodeId node = kRoot + 1; node < nodes;) {
    if (!has[node]) {
      node = shape.subtree_end(node);
      continue;
    }
    const auto id = static_cast<NodeId>(to.tree.nodes_.size());
    copies[node] = id;
    to.tree.nodes_.push_back({.name = shape.nodes_[node].name,
                              .parent = copies[shape.parent(node)],
                              .subtree_end = id + 1});
    to.tree.self_.push_back(self[node]);
    to.origin.push_back(node);
    ++node;
  }
}

WeighedTree Weigher::weigh(const CallTree& shape, const Weights& weights) {
  WeighedTree to;
  to.tree.nodes_.reserve(shape.size());
  to.tree.self_.reserve(shape.size());
  to.origin.reserve(shape.size());
  to.tree.names_ = shape.names_;
  to.tree.saturated_ = shape.saturated_;
  to.tree.nodes_.push_back({.name = shape.nodes_[kRoot].name, .parent = kRoot, .subtree_end = 1});
  to.tree.self_.push_back(weights.self[kRoot]);
  to.origin.push_back(kRoot);
  copy(shape, weights.self, kRoot, to);
  const bool has_aside = std::any_of(weights.aside.begin(), weights.aside.end(),
                                     [](Count count) { return !count.is_zero(); });
  if (has_aside) {
    to.aside = static_cast<NodeId>(to.tree.nodes_.size());
    const auto name = static_cast<std::uint32_t>(to.tree.names_.size());
    to.tree.names_.push_back(to.tree.texts_.store(weights.aside_name));
    to.tree.nodes_.push_back({.name = name, .parent = kRoot, .subtree_end = to.aside + 1});
    to.tree.self_.push_back(weights.aside[kRoot]);
    to.origin.push_back(kRoot);
    copy(shape, weights.aside, to.aside, to);
  }
  to.tree.add_up();
  return to;
}

}  // namespace pe::painting

namespace pe::flamediff {
namespace {

using painting::CallTree;
using painting::ComparedNodes;
using painting::kRoot;
using painting::NodeId;
using painting::Noise;
using painting::WeighedTree;

constexpr painting::Rgb kDimmed{0xdc, 0xdc, 0xdc};

/// Scales counts of one side to those of the other.
class Scale {
 public:
  explicit Scale(double factor) : factor_(factor) {
    // Keeps three digits after the first of a scaled count of 1, so that the page stays small.
    const double digits = 3 - std::floor(std::log10(factor));
    decimals_ = std::pow(10.0, std::clamp(digits, 0.0, 9.0));
  }

  [[nodiscard]] Count operator()(Count count) const {
    if (factor_ == 1)
      return count;
    const double scaled = std::min(count.as_double() * factor_, 1.8e19);  // fits 64 bits
    const double whole = std::floor(scaled);
    const double rest = std::round((scaled - whole) * decimals_) / decimals_;
    const double billionths = std::min(rest * Count::kOne, Count::kOne - 1.0);
    return {.whole = static_cast<std::uint64_t>(whole),
            .billionths = static_cast<std::uint32_t>(std::llround(billionths))};
  }

 private:
  double factor_;
  double decimals_;  ///< 10^decimals
};

double ratio(double to, double from) { return to > 0 && from > 0 ? to / from : 1; }

/// Returns the widths of frames, in counts of the side that `options` chooses.
painting::Weights weights_of(const Comparison& comparison, const Options& options) {
  const Wholes& wholes = comparison.wholes;
  const bool is_before = options.width_from == WidthFrom::kBefore;
  const double half = options.width_from == WidthFrom::kBoth ? 0.5 : 1;
  const Scale of_before(half * (is_before ? 1 : ratio(wholes.after, wholes.before)));
  const Scale of_after(half * (is_before ? ratio(wholes.before, wholes.after) : 1));
  const auto& self = comparison.self_of_nodes.sides;
  const auto& totals = comparison.nodes.sides;
  painting::Weights weights{.self = std::vector<Count>(self.size()),
                            .aside = std::vector<Count>(self.size()),
                            .aside_name = is_before ? "[new]" : "[vanished]"};
  for (std::size_t node = 0; node < self.size(); ++node) {
    Count& width = weights.self[node];
    if (options.width_from == WidthFrom::kBoth) {
      width = of_before(self[node].before);
      static_cast<void>(width.add(of_after(self[node].after)));
      continue;
    }
    width = is_before ? self[node].before : self[node].after;
    const bool is_unseen = (is_before ? totals[node].before : totals[node].after).is_zero();
    if (is_unseen)
      weights.aside[node] = is_before ? of_after(self[node].after) : of_before(self[node].before);
  }
  return weights;
}

/// Fills in the frame that holds all stacks set aside.
void describe_aside(const WeighedTree& weighed, const Comparison& comparison, bool is_before,
                    ComparedNodes& nodes) {
  if (weighed.aside == kRoot)
    return;
  Sides sum;
  for (std::size_t node = 0; node < comparison.self_of_nodes.sides.size(); ++node) {
    const Sides& total = comparison.nodes.sides[node];
    const Sides& self = comparison.self_of_nodes.sides[node];
    if (is_before && total.before.is_zero())
      static_cast<void>(sum.after.add(self.after));
    if (!is_before && total.after.is_zero())
      static_cast<void>(sum.before.add(self.before));
  }
  nodes.before[weighed.aside] = sum.before;
  nodes.after[weighed.aside] = sum.after;
  nodes.changes[weighed.aside] = {};
}

/// Returns the largest change beyond noise, so that such changes use the full range of colours.  If
/// none is beyond noise, returns the largest of all.
double largest_change(const WeighedTree& weighed, const ComparedNodes& nodes) {
  double sure = 0;
  double any = 0;
  for (NodeId node = kRoot + 1; node < weighed.origin.size(); ++node) {
    if (node == weighed.aside)
      continue;
    const double change = std::abs(nodes.change(node));
    any = std::max(any, change);
    if (nodes.changes[node].noise == Noise::kBeyond)
      sure = std::max(sure, change);
  }
  return sure > 0 ? sure : any;
}

ComparedNodes compared_nodes(const WeighedTree& weighed, const Comparison& comparison,
                             const Options& options) {
  ComparedNodes nodes;
  nodes.whole_before = comparison.wholes.before;
  nodes.whole_after = comparison.wholes.after;
  nodes.dims_noise = options.is_only_significant;
  const std::size_t size = weighed.origin.size();
  nodes.before.reserve(size);
  nodes.after.reserve(size);
  nodes.changes.reserve(size);
  for (const NodeId origin : weighed.origin) {
    nodes.before.push_back(comparison.nodes.sides[origin].before);
    nodes.after.push_back(comparison.nodes.sides[origin].after);
    nodes.changes.push_back(comparison.nodes.changes[origin]);
  }
  nodes.largest = largest_change(weighed, nodes);
  describe_aside(weighed, comparison, options.width_from == WidthFrom::kBefore, nodes);
  return nodes;
}

/// Uses the same colours and texts as the page's script, painting/page/compared.js.
class Looks final : public painting::FrameLooks {
 public:
  Looks(const CallTree& tree, const ComparedNodes& nodes, const std::string& unit)
      : tree_(tree), nodes_(nodes), unit_(unit) {
    const auto set_class = [](painting::FrameExtra& extra, const char* name) {
      extra.group.push_back({.name = "class", .value = name});
    };
    set_class(new_, "new");
    set_class(gone_, "gone");
    set_class(dim_, "dim");
    set_class(new_and_dim_, "new dim");
    set_class(gone_and_dim_, "gone dim");
  }

  painting::Rgb color(NodeId node) override {
    return nodes_.is_dim(node) ? kDimmed
                               : painting::difference_color(nodes_.shade(node), nodes_.largest);
  }
  [[nodiscard]] std::string_view name(NodeId node) const override {
    return painting::without_mark(tree_.name(node));
  }
  [[nodiscard]] std::string detail(const painting::Box& box) const override {
    const NodeId node = box.node;
    const std::string before = painting::grouped_count(nodes_.before[node], 1);
    const std::string after = painting::grouped_count(nodes_.after[node], 1);
    if (node == kRoot && nodes_.change(node) == 0)  // both shares are 100 %
      return fmt::format("before {} {}, after {}", before, unit_, after);
    const painting::Change& change = nodes_.changes[node];
    const auto rounded = [](double share) { return std::round(share * 1e6) / 1e6; };
    const std::string interval =
        change.noise == Noise::kUnknown
            ? ""
            : fmt::format(" ({} to {})", signed_percent(rounded(change.interval.low)),
                          signed_percent(rounded(change.interval.high)));
    const std::string_view mark = nodes_.is_new(node)    ? "new, "
                                  : nodes_.is_gone(node) ? "gone, "
                                                         : "";
    return fmt::format("before {} {}, {}; after {}, {}; {}{}{}, {}", before, unit_,
                       percent(nodes_.share_before(node)), after, percent(nodes_.share_after(node)),
                       mark, signed_percent(nodes_.change(node)), interval,
                       noise_text(change.noise));
  }
  [[nodiscard]] const painting::FrameExtra* extra(NodeId node) const override {
    if (nodes_.is_new(node))
      return nodes_.is_dim(node) ? &new_and_dim_ : &new_;
    if (nodes_.is_gone(node))
      return nodes_.is_dim(node) ? &gone_and_dim_ : &gone_;
    return nodes_.is_dim(node) ? &dim_ : nullptr;
  }

 private:
  static std::string_view noise_text(Noise noise) {
    switch (noise) {
      case Noise::kUnknown:
        return "noise unknown";
      case Noise::kTooRare:
        return "too rare to tell";
      case Noise::kWithin:
        return "may be noise";
      case Noise::kBeyond:
        break;
    }
    return "more than noise";
  }

  const CallTree& tree_;
  const ComparedNodes& nodes_;
  const std::string& unit_;
  painting::FrameExtra new_, gone_, dim_, new_and_dim_, gone_and_dim_;
};

std::string side_text(std::string_view side, const std::vector<std::string>& files, Count total,
                      const std::string& unit) {
  const std::string name = files.size() == 1 ? files[0] : plural(files.size(), "run");
  return fmt::format("{}: {}, {} {}", side, input_name(name), painting::grouped_count(total, 1),
                     unit);
}

/// Reports how many frames changed beyond noise, which the colours alone do not show.
std::string certainty_text(const ComparedNodes& nodes, const Comparison& comparison) {
  if (!comparison.knows_noise())
    return fmt::format("noise unknown: {}", why_noise_is_unknown(comparison));
  const auto beyond = static_cast<std::uint64_t>(
      std::ranges::count(nodes.changes, Noise::kBeyond, &painting::Change::noise));
  return fmt::format("{} changed by more than noise",
                     beyond == 0 ? "no frame" : plural(beyond, "frame"));
}

std::vector<painting::LegendEntry> legend_of(const ComparedNodes& nodes) {
  using Sample = painting::LegendEntry::Sample;
  painting::DifferenceLegend changes;
  bool is_any_new = false;
  bool is_any_gone = false;
  bool is_any_dim = false;
  for (NodeId node = kRoot + 1; node < nodes.before.size(); ++node) {
    is_any_new = is_any_new || nodes.is_new(node);
    is_any_gone = is_any_gone || nodes.is_gone(node);
    if (nodes.is_dim(node))
      is_any_dim = true;
    else
      changes.add(nodes.shade(node));
  }
  std::vector<painting::LegendEntry> legend = changes.entries();
  if (is_any_new)
    legend.push_back({.color = {0xb0, 0x00, 0x20}, .meaning = "new", .sample = Sample::kFramed});
  if (is_any_gone)
    legend.push_back(
        {.color = {0x1a, 0x3f, 0xb0}, .meaning = "vanished", .sample = Sample::kDashed});
  if (is_any_dim)
    legend.push_back({.color = kDimmed, .meaning = "may be noise"});
  return legend;
}

painting::PageStyle page_style(const ComparedNodes& nodes, const Comparison& comparison,
                               const Options& options) {
  painting::PageStyle style = options.page;
  style.min_width = options.min_width.pixels(style.geometry);
  style.legend = legend_of(nodes);
  style.geometry.has_legend = true;
  if (style.subtitle.empty())
    style.subtitle =
        fmt::format("{}; {}; {}", certainty_text(nodes, comparison),
                    side_text("before", options.before, comparison.totals.before, style.count_name),
                    side_text("after", options.after, comparison.totals.after, style.count_name));
  style.geometry.has_subtitle = true;
  return style;
}

/// Returns the totals, the meaning of the colours, and how many frames changed beyond noise.
std::string summary_of(const WeighedTree& weighed, const ComparedNodes& nodes,
                       const Comparison& comparison, const std::string& unit) {
  return fmt::format(
      "{} {} before, {} after, {}. Red frames grew, blue ones shrank, each including everything "
      "above it; {}.",
      painting::grouped_count(comparison.totals.before, 1), unit,
      painting::grouped_count(comparison.totals.after, 1), plural(weighed.tree.size() - 1, "frame"),
      certainty_text(nodes, comparison));
}

}  // namespace

void draw(const CallTree& tree, const Comparison& comparison, const Options& options, Io& io) {
  const WeighedTree weighed = painting::Weigher::weigh(tree, weights_of(comparison, options));
  const ComparedNodes nodes = compared_nodes(weighed, comparison, options);
  painting::PageStyle style = page_style(nodes, comparison, options);
  const double usable_width = style.geometry.usable_width();
  painting::Layout layout = painting::lay_out(
      weighed.tree, {.usable_width = usable_width, .min_width = options.min_width, .total = {}});
  const std::vector<painting::Rgb> colors(weighed.tree.name_count(), painting::Rgb{255, 255, 255});
  const painting::EmbeddedTree embedded = painting::embed_for_page(
      weighed.tree, layout,
      {.whole = layout.whole, .limit = options.embed_limit, .colors = colors, .compared = &nodes},
      usable_width);
  painting::set_levels(layout, embedded, style);
  style.merges_narrow = !embedded.bytes.empty();
  style.summary = summary_of(weighed, nodes, comparison, style.count_name) +
                  painting::left_out_text(embedded, 1, style.count_name);
  Looks looks(weighed.tree, nodes, style.count_name);
  const std::uint64_t replaced = painting::write_page(layout, style, looks, embedded, io.out);
  if (replaced > 0)
    io.note(fmt::format("replaced {} that XML does not allow", plural(replaced, "character")));
  if (options.embed_limit > 0 && embedded.bytes.empty())
    io.note("--embed: too small for the frames that are drawn: the page has no tree to zoom into");
}

void draw_error(std::string_view message, const Options& options, Output& out) {
  painting::PageWriter(options.page, out).error_page(message);
}

}  // namespace pe::flamediff
