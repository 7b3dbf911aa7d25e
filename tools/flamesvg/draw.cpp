// SPDX-License-Identifier: MIT
#include "flamesvg/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "flamesvg/options.h"
#include "painting/embed.h"
#include "painting/numbers.h"
#include "painting/picture.h"
#include "painting/svg/colors.h"
#include "painting/svg/page.h"
#include "painting/tree/functions.h"

namespace pe::flamesvg {
namespace {

/// Adds the names of runtimes, from the facts about them, to the colours of their functions.
void name_runtimes(const Options& options, std::vector<painting::LegendEntry>& legend) {
  for (painting::LegendEntry& entry : legend)
    for (const painting::Attribute& fact : options.page.facts)
      if ((entry.meaning == "script" && fact.name == "runtimes") ||
          (entry.meaning == "JIT" && fact.name == "compiled"))
        entry.meaning += " (" + fact.value + ")";
}

}  // namespace

void suit_colors(const painting::CallTree& tree, Options& options) {
  std::vector<std::string_view> names;
  names.reserve(tree.name_count());
  for (std::uint32_t name = 0; name < tree.name_count(); ++name)
    names.push_back(tree.name_text(name));
  if (options.finds_palette && std::ranges::any_of(names, painting::has_kind_mark))
    options.palette = painting::Palette::kKind;
  std::vector<painting::LegendEntry> legend = painting::legend_of(options.palette);
  if (!legend.empty() && !options.is_perl) {
    std::vector<painting::LegendEntry> unused = legend;
    for (const std::string_view name : names) {
      const std::string_view meaning = painting::meaning_of(options.palette, name);
      std::erase_if(unused, [&](const auto& entry) { return entry.meaning == meaning; });
    }
    std::erase_if(legend, [&](const auto& entry) {
      return std::ranges::find(unused, entry.meaning, &painting::LegendEntry::meaning) !=
             unused.end();
    });
  }
  name_runtimes(options, legend);
  options.page.geometry.has_legend = !legend.empty();
  options.page.legend = std::move(legend);
}

Painter::Painter(const Profile& profile, const Options& options, PaletteMap* kept)
    : tree_(profile.tree),
      perl_(profile.perl ? &*profile.perl : nullptr),
      options_(options),
      kept_(kept) {
  colors_.reserve(tree_.name_count());
  for (std::uint32_t name = 0; name < tree_.name_count(); ++name)
    colors_.push_back(color_of_name(tree_.name_text(name)));
}

std::optional<double> Painter::delta_of(painting::NodeId node) const {
  return perl_ != nullptr ? perl_->frames()[node].delta : tree_.delta(node);
}

painting::Rgb Painter::color_of_name(std::string_view name) const {
  if (kept_ != nullptr)
    if (const auto color = kept_->find(name))
      return *color;
  // The root is not a function, so its colour has no meaning.
  if (name.empty() && (!options_.is_perl || !options_.page.legend.empty()))
    return {222, 214, 196};
  if (!options_.lost.is_zero() && name == kLostName)
    return {170, 170, 170};
  const painting::Palette palette =
      options_.is_perl ? options_.palette : painting::palette_for(options_.palette, name);
  return painting::frame_color(palette, options_.shade, name, options_.seed);
}

painting::Rgb Painter::paint(painting::NodeId node) {
  const std::string_view name = tree_.name(node);
  const auto delta = delta_of(node);
  if (delta && !painting::separator_color(name)) {
    const double largest = perl_ != nullptr ? perl_->largest_delta() : tree_.largest_delta();
    return painting::difference_color(options_.negate ? -*delta : *delta, largest,
                                      perl_ != nullptr ? painting::kWhite : painting::kUnchanged);
  }
  const painting::Rgb color = colors_[tree_.name_id(node)];
  if (kept_ != nullptr)
    kept_->add(name, color);
  return color;
}

namespace {

using painting::CallTree;
using painting::grouped_count;
using painting::kRoot;
using painting::NodeId;

/// Returns the number of nodes with own counts.
std::uint64_t stacks_of(const CallTree& tree) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(tree.selves(), [](folded::Count count) { return !count.is_zero(); }));
}

/// Returns the totals of the root's children, by name_id().
std::vector<folded::Count> totals_on_root(const CallTree& tree) {
  std::vector<folded::Count> totals(tree.name_count());
  for (NodeId node = kRoot + 1; node < tree.size(); node = tree.subtree_end(node))
    static_cast<void>(totals[tree.name_id(node)].add(tree.total(node)));
  return totals;
}

/// Formats "1,234 stacks".
std::string grouped_plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped_count({.whole = count}, 1), noun, count == 1 ? "" : "s");
}

/// Formats "a 50.00%, b 25.00%", the largest first, equal ones by name.
std::string largest(const CallTree& tree, const std::vector<folded::Count>& of_names,
                    double whole) {
  constexpr std::size_t kShown = 5;
  std::vector<std::uint32_t> order(of_names.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto shown = order.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, of_names.size()));
  std::partial_sort(order.begin(), shown, order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return of_names[a] != of_names[b] ? of_names[a] > of_names[b]
                                      : tree.name_text(a) < tree.name_text(b);
  });
  std::string text;
  for (auto name = order.begin(); name != shown && !of_names[*name].is_zero(); ++name)
    text += fmt::format("{}{} {:.2f}%", text.empty() ? "" : ", ",
                        painting::without_mark(tree.name_text(*name)),
                        100 * of_names[*name].as_double() / whole);
  return text;
}

}  // namespace

std::string summary_text(const CallTree& tree, folded::Count whole, const Options& options) {
  painting::FunctionCounts functions =
      painting::function_counts(tree, tree.selves(), tree.totals());
  if (options.reverse)  // the function that ran is the root's child
    functions.self = totals_on_root(tree);
  return fmt::format("{} {} in {}, {}. Largest self: {}. Largest total: {}.",
                     grouped_count(tree.total(kRoot), options.factor), options.page.count_name,
                     grouped_plural(stacks_of(tree), "stack"),
                     grouped_plural(tree.size() - 1, "frame"),
                     largest(tree, functions.self, whole.as_double()),
                     largest(tree, functions.total, whole.as_double()));
}

namespace {

using painting::Box;

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
                                   .is_reversed = picture.options.reverse,
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
  [[nodiscard]] bool shows_shares() const override { return !picture_.options.is_perl; }
  [[nodiscard]] bool is_tail_call(painting::NodeId node) const override {
    return !picture_.options.is_perl && painting::is_tail_call(picture_.tree.name(node));
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
