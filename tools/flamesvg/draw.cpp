// SPDX-License-Identifier: MIT
#include "flamesvg/draw.h"

#include <fmt/format.h>

#include <vector>

#include "flamesvg/embed.h"
#include "flamesvg/summary.h"
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
  style.factor = options.factor;
  style.min_width = options.min_width.is_percent
                        ? options.min_width.value / 100 * style.geometry.usable_width()
                        : options.min_width.value;
  return style;
}

/// By number of the name.
std::vector<svg::Rgb> name_colors(const CallTree& tree, const Options& options) {
  std::vector<svg::Rgb> colors;
  colors.reserve(tree.name_count());
  for (std::uint32_t name = 0; name < tree.name_count(); ++name)
    colors.push_back(svg::frame_color(options.palette, options.shade, tree.name_text(name)));
  return colors;
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

std::uint64_t draw(const CallTree& tree, const Layout& layout, const Options& options,
                   io::Output& out) {
  const folded::Count whole = layout.boxes.front().count;
  const std::vector<svg::Rgb> colors = name_colors(tree, options);
  EmbeddedTree embedded;
  if (options.embed_limit > 0)
    embedded = embed_tree(tree, {.whole = whole, .limit = options.embed_limit, .colors = colors});
  svg::PageStyle style = page_style(options, layout.levels);
  style.merges_narrow = !embedded.bytes.empty();
  style.summary = summary_text(tree, whole, options) + left_out_text(embedded, options);

  svg::PageWriter page(style, out);
  page.begin();
  std::string start;
  std::string count;
  for (const Box& box : layout.boxes) {
    const svg::Rgb fill = colors[tree.name_id(box.node)];
    if (page.is_narrow(box.left, box.right)) {
      page.narrow_frame({.depth = box.depth, .left = box.left, .right = box.right, .fill = fill});
      continue;
    }
    const std::string detail = detail_text(box, options, whole.as_double());
    start.clear();
    append_count(start, box.start);
    count.clear();
    append_count(count, box.count);
    page.frame({.name = box.node == kRoot ? "all" : svg::without_mark(tree.name(box.node)),
                .detail = detail,
                .fill = fill,
                .depth = box.depth,
                .left = box.left,
                .right = box.right,
                .start = start,
                .count = count});
  }
  page.embed(embedded.bytes);
  page.end();
  return page.replaced();
}

void draw_error(std::string_view message, const Options& options, io::Output& out) {
  const svg::PageStyle style = page_style(options, 0);
  svg::PageWriter(style, out).error_page(message);
}

}  // namespace pe::flamesvg
