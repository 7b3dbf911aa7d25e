// SPDX-License-Identifier: MIT
#include "flamesvg/painter.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace pe::flamesvg
