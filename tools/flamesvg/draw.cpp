// SPDX-License-Identifier: MIT
#include "flamesvg/draw.h"

#include <fmt/format.h>

#include "svg/page.h"

namespace pe::flamesvg {
namespace {

using calltree::CallTree;
using calltree::kRoot;

std::string detail_text(const Box& box, const Options& options, double whole) {
  const std::string count = grouped_count(box.count, options.factor);
  const std::string& unit = options.page.count_name;
  if (box.node == kRoot)
    return fmt::format("{} {}, 100%", count, unit);
  return fmt::format("{} {}, {:.2f}%", count, unit, 100 * box.count.as_double() / whole);
}

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

std::uint64_t draw(const CallTree& tree, const Layout& layout, const Options& options,
                   io::Output& out) {
  const svg::PageStyle style = page_style(options, layout.levels);
  svg::PageWriter page(style, out);
  page.begin();
  const double whole = layout.boxes.front().count.as_double();
  std::string start;
  std::string count;
  for (const Box& box : layout.boxes) {
    const std::string_view name = tree.name(box.node);
    const std::string detail = detail_text(box, options, whole);
    start.clear();
    append_count(start, box.start);
    count.clear();
    append_count(count, box.count);
    page.frame({.name = box.node == kRoot ? "all" : svg::without_mark(name),
                .detail = detail,
                .fill = svg::frame_color(options.palette, options.shade, name),
                .depth = box.depth,
                .left = box.left,
                .right = box.right,
                .start = start,
                .count = count});
  }
  page.end();
  return page.replaced();
}

void draw_error(std::string_view message, const Options& options, io::Output& out) {
  const svg::PageStyle style = page_style(options, 0);
  svg::PageWriter(style, out).error_page(message);
}

}  // namespace pe::flamesvg
