// SPDX-License-Identifier: MIT
#include "painting/picture.h"

#include <fmt/format.h>

#include "painting/numbers.h"

namespace pe::painting {

EmbeddedTree embed_for_page(const CallTree& tree, const Layout& layout, const EmbedRequest& request,
                            double usable_width) {
  if (request.limit == 0)
    return {};
  EmbeddedTree embedded = embed_tree(tree, request);
  const double pixel = layout.whole.as_double() / usable_width;
  if (embedded.left_out > 0 && embedded.smallest.as_double() > pixel) {
    embedded.bytes.clear();
    embedded.times.clear();
  }
  return embedded;
}

std::string left_out_text(const EmbeddedTree& embedded, double factor,
                          std::string_view count_name) {
  if (embedded.left_out == 0 || embedded.bytes.empty())
    return {};
  return fmt::format(" {} frames with fewer than {} {} are not in this file.",
                     grouped_count({.whole = embedded.left_out}, 1),
                     grouped_count(embedded.smallest, factor), count_name);
}

void set_levels(Layout& layout, const EmbeddedTree& embedded, PageStyle& style) {
  constexpr double kDrawnHeight = 3200;  // pixels
  const auto most = static_cast<std::uint32_t>(kDrawnHeight / style.geometry.frame_height);
  const std::uint32_t levels = layout.levels;
  const std::uint32_t left_out = embedded.bytes.empty() ? 0 : cut_towers(layout, most);
  if (left_out > 0)
    style.left_out =
        fmt::format("{} of {} levels are not drawn", grouped_count({.whole = left_out}, 1),
                    grouped_count({.whole = levels}, 1));
  style.geometry.levels = layout.levels;
}

std::uint64_t write_page(const Layout& layout, const PageStyle& style, FrameLooks& looks,
                         const EmbeddedTree& embedded, Output& out) {
  PageWriter page(style, out);
  page.begin();
  std::string start;
  std::string count;
  const double usable_width = style.geometry.usable_width();
  for (const Box& box : layout.boxes) {
    const Rgb fill = looks.color(box.node);
    if (page.is_narrow(box.left, box.right)) {
      page.narrow_frame({.depth = box.depth, .left = box.left, .right = box.right, .fill = fill});
      continue;
    }
    std::string detail = looks.detail(box);
    const bool is_tail_call = looks.is_tail_call(box.node);
    if (is_tail_call)
      detail += "; returned by a tail call";
    const std::uint32_t repeats = looks.repeats(box.node);
    const std::string repeated = repeats > 1 ? fmt::format(" \u00d7{}", repeats) : "";
    if (repeats > 1)
      detail += fmt::format("; recursion{}", repeated);
    start.clear();
    append_count(start, box.start);
    count.clear();
    append_count(count, box.count);
    const bool has_share = looks.shows_shares() && box.node != kRoot;
    const std::string share =
        has_share ? fmt::format("{:.1f}%", 100 * (box.right - box.left) / usable_width) : "";
    page.frame({.name = box.node == kRoot ? "all" : looks.name(box.node),
                .detail = detail,
                .label_end = repeated,
                .share = share,
                .fill = fill,
                .depth = box.depth,
                .left = box.left,
                .right = box.right,
                .start = start,
                .count = count,
                .extra = looks.extra(box.node),
                .is_tail_call = is_tail_call});
  }
  for (const Tower& tower : layout.towers)
    page.deeper_frame(tower.left, tower.right,
                      fmt::format("+{} deeper", grouped_count({.whole = tower.rows}, 1)));
  page.embed(embedded.bytes, embedded.times);
  page.end();
  return page.replaced();
}

}  // namespace pe::painting
