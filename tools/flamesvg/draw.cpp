// SPDX-License-Identifier: MIT
#include "flamesvg/draw.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "flamesvg/embed.h"
#include "flamesvg/summary.h"
#include "svg/page.h"

namespace pe::flamesvg {
namespace {

using calltree::CallTree;
using calltree::kRoot;

/// flamegraph.pl knows no mark of libraries.
std::string_view shown_name(std::string_view name, const Options& options) {
  return options.is_perl && name.ends_with("_[l]") ? name : svg::without_mark(name);
}

/// "1,234 samples, 12.34%", and what changed: "; +1.23%".
class Details {
 public:
  explicit Details(const Picture& picture)
      : tree_(picture.tree),
        options_(picture.options),
        whole_(picture.layout.boxes.front().count.as_double()) {}

  [[nodiscard]] std::string of(const Box& box) const {
    const std::string count = grouped_count(box.count, options_.factor);
    const std::string& unit = options_.page.count_name;
    const bool is_root = box.node == kRoot;
    const std::string share =
        is_root ? "100%" : fmt::format("{:.2f}%", 100 * shown_count(box) / shown_whole());
    return fmt::format("{} {}, {}{}", count, unit, share,
                       is_root && options_.is_perl ? "" : difference(box));
  }

 private:
  /// flamegraph.pl rounds counts before it divides.
  [[nodiscard]] double shown_count(const Box& box) const {
    const double count = box.count.as_double() * (options_.is_perl ? options_.factor : 1);
    return options_.is_perl ? std::nearbyint(count) : count;
  }
  [[nodiscard]] double shown_whole() const {
    return whole_ * (options_.is_perl ? options_.factor : 1);
  }
  [[nodiscard]] std::string difference(const Box& box) const {
    const auto delta = tree_.delta(box.node);
    if (!delta)
      return {};
    const double shown = options_.negate ? -*delta : *delta;
    const double percent = 100 * shown / shown_whole();
    return fmt::format("; {}{:.2f}%", shown > 0 ? "+" : "", shown == 0 ? 0 : percent);
  }

  const CallTree& tree_;
  const Options& options_;
  double whole_;
};

/// `tree`: null if there is none to draw.
svg::PageStyle page_style(const CallTree* tree, const Options& options, std::uint32_t levels) {
  svg::PageStyle style = options.page;
  style.geometry.levels = levels;
  style.factor = options.factor;
  style.min_width = options.min_width.is_percent
                        ? options.min_width.value / 100 * style.geometry.usable_width()
                        : options.min_width.value;
  style.is_timeline = options.order == Order::kInput;
  if (tree != nullptr && tree->is_differential() && !options.is_perl) {
    style.legend = svg::difference_legend();
    style.geometry.has_legend = true;
  }
  if (options.order == Order::kInput)
    style.order = "that of the input: the x-axis is time";
  else if (options.order == Order::kWidth)
    style.order = "by width: the x-axis is not time";
  return style;
}

EmbeddedTree embed(const Picture& picture, const Painter& painter) {
  const CallTree& tree = picture.tree;
  if (picture.options.embed_limit == 0)
    return {};
  std::vector<svg::Rgb> colors;
  colors.reserve(tree.name_count());
  for (std::uint32_t name = 0; name < tree.name_count(); ++name)
    colors.push_back(painter.color_of_name(tree.name_text(name)));
  EmbeddedTree embedded = embed_tree(tree, {.whole = picture.layout.boxes.front().count,
                                            .limit = picture.options.embed_limit,
                                            .colors = colors,
                                            .negate = picture.options.negate});
  // A tree without frames that are as wide as a pixel would make the picture poorer.
  const double whole = picture.layout.boxes.front().count.as_double();
  const double pixel = whole / picture.options.page.geometry.usable_width();
  if (embedded.left_out > 0 && embedded.smallest.as_double() > pixel)
    embedded.bytes.clear();
  return embedded;
}

std::string left_out_text(const EmbeddedTree& embedded, const Options& options) {
  if (embedded.left_out == 0 || embedded.bytes.empty())
    return {};
  return fmt::format(" {} frames counted fewer than {} {} are not in this file.",
                     grouped_count({.whole = embedded.left_out}, 1),
                     grouped_count(embedded.smallest, options.factor), options.page.count_name);
}

}  // namespace

std::string grouped_count(folded::Count count, double factor) {
  const bool is_exact = count.billionths == 0 && factor == 1;
  std::string digits =
      is_exact ? fmt::format("{}", count.whole) : fmt::format("{:.0f}", count.as_double() * factor);
  for (std::size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, 1, ',');
  return digits;
}

Drawn draw(const Picture& picture, Painter& painter, io::Output& out) {
  const CallTree& tree = picture.tree;
  const Layout& layout = picture.layout;
  const EmbeddedTree embedded = embed(picture, painter);
  svg::PageStyle style = page_style(&tree, picture.options, layout.levels);
  // The perl's picture has an element for each frame.
  style.merges_narrow = !embedded.bytes.empty() && !picture.options.is_perl;
  style.summary = summary_text(tree, layout.boxes.front().count, picture.options) +
                  left_out_text(embedded, picture.options);

  svg::PageWriter page(style, out);
  page.begin();
  const Details details(picture);
  std::string start;
  std::string count;
  for (const Box& box : layout.boxes) {
    const svg::Rgb fill = painter.paint(box.node);
    if (page.is_narrow(box.left, box.right)) {
      page.narrow_frame({.depth = box.depth, .left = box.left, .right = box.right, .fill = fill});
      continue;
    }
    const std::string_view name = tree.name(box.node);
    const std::string detail = details.of(box);
    start.clear();
    append_count(start, box.start);
    count.clear();
    append_count(count, box.count);
    page.frame({.name = box.node == kRoot ? "all" : shown_name(name, picture.options),
                .detail = detail,
                .fill = fill,
                .depth = box.depth,
                .left = box.left,
                .right = box.right,
                .start = start,
                .count = count,
                .extra = picture.attributes.find(name)});
  }
  page.embed(embedded.bytes);
  page.end();
  return {.replaced = page.replaced(),
          .is_without_tree = picture.options.embed_limit > 0 && embedded.bytes.empty()};
}

void draw_error(std::string_view message, const Options& options, io::Output& out) {
  const svg::PageStyle style = page_style(nullptr, options, 0);
  svg::PageWriter(style, out).error_page(message);
}

}  // namespace pe::flamesvg
