// SPDX-License-Identifier: MIT
#include "flamesvg/draw.h"

#include <fmt/format.h>

#include <vector>

#include "flamesvg/perl.h"
#include "flamesvg/summary.h"
#include "painting/embed.h"
#include "painting/numbers.h"
#include "painting/picture.h"
#include "painting/svg/page.h"

namespace pe::flamesvg {
namespace {

using painting::Box;
using painting::CallTree;
using painting::grouped_count;
using painting::kRoot;

/// Formats "1,234 samples, 12.34%" and the change, "; +1.23%".
class Details {
 public:
  explicit Details(const Picture& picture)
      : tree_(picture.tree), options_(picture.options), whole_(picture.layout.whole.as_double()) {}

  [[nodiscard]] std::string of(const Box& box) const {
    const std::string share =
        box.node == kRoot ? "100%" : fmt::format("{:.2f}%", 100 * box.count.as_double() / whole_);
    return fmt::format("{} {}, {}{}", grouped_count(box.count, options_.factor),
                       options_.page.count_name, share, difference(box));
  }

 private:
  [[nodiscard]] std::string difference(const Box& box) const {
    const auto delta = tree_.delta(box.node);
    if (!delta)
      return {};
    const double shown = options_.negate ? -*delta : *delta;
    const double percent = 100 * shown / whole_;
    return fmt::format("; {}{:.2f}%", shown > 0 ? "+" : "", shown == 0 ? 0 : percent);
  }

  const CallTree& tree_;
  const Options& options_;
  double whole_;
};

std::vector<painting::LegendEntry> legend_of_differences(const CallTree& tree, bool negate) {
  painting::DifferenceLegend legend;
  for (painting::NodeId node = kRoot + 1; node < tree.size(); ++node)
    if (const auto delta = tree.delta(node))
      legend.add(negate ? -*delta : *delta);
  return legend.entries();
}

/// `tree`: null if there is no tree to draw.
painting::PageStyle page_style(const CallTree* tree, const Options& options) {
  painting::PageStyle style = options.page;
  style.factor = options.factor;
  style.min_width = options.min_width.pixels(style.geometry);
  style.is_timeline = options.order == Order::kInput;
  if (tree != nullptr && tree->is_differential() && !options.is_perl) {
    style.legend = legend_of_differences(*tree, options.negate);
    style.geometry.has_legend = true;
  }
  if (options.order == Order::kInput)
    style.order = "that of the input: the x-axis is time";
  else if (options.order == Order::kWidth)
    style.order = "by width: the x-axis is not time";
  return style;
}

painting::EmbeddedTree embed(const Picture& picture, const Painter& painter) {
  return painting::embed_for_page(picture.tree, picture.layout,
                                  {.whole = picture.layout.whole,
                                   .limit = picture.options.embed_limit,
                                   .colors = painter.colors(),
                                   .negate = picture.options.negate,
                                   .times = picture.times.empty() ? nullptr : &picture.times},
                                  picture.options.page.geometry.usable_width());
}

class Looks final : public painting::FrameLooks {
 public:
  Looks(const Picture& picture, Painter& painter)
      : picture_(picture), painter_(painter), details_(picture) {}

  painting::Rgb color(painting::NodeId node) override { return painter_.paint(node); }
  [[nodiscard]] std::string_view name(painting::NodeId node) const override {
    const std::string_view name = picture_.tree.name(node);
    return picture_.options.is_perl ? perl_shown_name(name) : painting::without_mark(name);
  }
  [[nodiscard]] std::uint32_t repeats(painting::NodeId node) const override {
    return picture_.tree.repeats(node);
  }
  [[nodiscard]] std::string detail(const Box& box) const override {
    return picture_.perl != nullptr ? perl_detail(*picture_.perl, picture_.options, box.node)
                                    : details_.of(box);
  }
  [[nodiscard]] const painting::FrameExtra* extra(painting::NodeId node) const override {
    return picture_.attributes.find(picture_.tree.name(node));
  }

 private:
  const Picture& picture_;
  Painter& painter_;
  Details details_;
};

}  // namespace

Drawn draw(Picture picture, Painter& painter, Output& out) {
  const CallTree& tree = picture.tree;
  const Options& options = picture.options;
  const painting::EmbeddedTree embedded = embed(picture, painter);
  painting::PageStyle style = page_style(&tree, options);
  if (options.is_perl)
    style.geometry.levels = picture.layout.levels;
  else
    painting::set_levels(picture.layout, embedded, style);
  // flamegraph.pl writes an element for each frame.
  style.merges_narrow = !embedded.bytes.empty() && !options.is_perl;
  style.summary = summary_text(tree, picture.layout.whole, options) +
                  painting::left_out_text(embedded, options.factor, options.page.count_name);
  Looks looks(picture, painter);
  return {.replaced = painting::write_page(picture.layout, style, looks, embedded, out),
          .is_without_tree = options.embed_limit > 0 && embedded.bytes.empty()};
}

void draw_error(std::string_view message, const Options& options, Output& out) {
  const painting::PageStyle style = page_style(nullptr, options);
  painting::PageWriter(style, out).error_page(message);
}

}  // namespace pe::flamesvg
