// SPDX-License-Identifier: MIT
#include "flamesvg/draw.h"

#include <fmt/format.h>

#include <cmath>

#include "svg/page.h"

namespace pe::flamesvg {
namespace {

using calltree::CallTree;
using calltree::kRoot;

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

svg::PageStyle page_style(const Options& options, std::uint32_t levels) {
  svg::PageStyle style = options.page;
  style.geometry.levels = levels;
  return style;
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

std::uint64_t draw(const Picture& picture, Painter& painter, io::Output& out) {
  const CallTree& tree = picture.tree;
  const svg::PageStyle style = page_style(picture.options, picture.layout.levels);
  svg::PageWriter page(style, out);
  page.begin();
  const Details details(picture);
  std::string start;
  std::string count;
  for (const Box& box : picture.layout.boxes) {
    const std::string_view name = tree.name(box.node);
    const std::string detail = details.of(box);
    start.clear();
    append_count(start, box.start);
    count.clear();
    append_count(count, box.count);
    page.frame({.name = box.node == kRoot ? "all" : svg::without_mark(name),
                .detail = detail,
                .fill = painter.paint(box.node),
                .depth = box.depth,
                .left = box.left,
                .right = box.right,
                .start = start,
                .count = count,
                .extra = picture.attributes.find(name)});
  }
  page.end();
  return page.replaced();
}

void draw_error(std::string_view message, const Options& options, io::Output& out) {
  const svg::PageStyle style = page_style(options, 0);
  svg::PageWriter(style, out).error_page(message);
}

}  // namespace pe::flamesvg
