// SPDX-License-Identifier: MIT
#include "flamesvg/options.h"

#include <fmt/format.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <random>
#include <string>
#include <string_view>

#include "base/cli/command_line.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "flamesvg/perl.h"

namespace pe::flamesvg {
namespace {

namespace po = boost::program_options;

using painting::refuse;

constexpr painting::NumberRange kFactors{.low = 0, .high = 1e18};

painting::Palette read_palette(const CommandLine& line) {
  const auto* text = line.text("colors");
  if (text == nullptr)
    return line.has("compat") ? painting::Palette::kHot : painting::Palette::kWarm;
  const auto palette = painting::find_palette(*text);
  if (!palette && line.has("compat"))
    return painting::Palette::kBlack;
  if (!palette)
    refuse("colors", "not one of " + painting::palette_names(), *text);
  return *palette;
}

void read_shade(const CommandLine& line, Options& options) {
  if (line.has("hash"))
    options.shade = painting::Shade::kByHash;
  if (line.has("hash") && line.has("compat"))
    return;  // even with --random
  if (!line.has("random") && !line.has("seed"))
    return;
  options.shade = painting::Shade::kByChance;
  options.seed = std::random_device()();
  if (const auto* text = line.text("seed")) {
    const auto seed = parse_number<std::uint64_t>(*text);
    if (!seed)
      refuse("seed", "not a number", *text);
    options.seed = *seed;
  }
}

void read_colors(const CommandLine& line, Options& options) {
  read_shade(line, options);
  options.palette = read_palette(line);
  options.finds_palette = !line.has("colors") && !line.has("compat");
  options.keeps_colors = line.has("cp");
  options.negate = line.has("negate");
}

std::string_view default_title(const CommandLine& line) {
  if (line.has("flamechart"))
    return "Flame Chart";
  return line.has("icicle") ? "Icicle Graph" : "Flame Graph";
}

std::optional<folded::Count> read_count(const CommandLine& line, const char* option) {
  const auto* text = line.text(option);
  if (text == nullptr)
    return std::nullopt;
  const auto count = folded::parse_count(*text);
  if (!count)
    refuse(option, "not a count", *text);
  return count;
}

constexpr Choice<Order> kOrders[] = {
    {"name", Order::kName},
    {"width", Order::kWidth},
};

Order read_order(const CommandLine& line) {
  const Order order = choose(line, "sort", kOrders, Order::kName);
  if (!line.has("flamechart"))
    return order;
  if (line.has("sort"))
    throw UsageError("--sort: a flame chart keeps the order of its input");
  return Order::kInput;
}

void read_shape(const CommandLine& line, Options& options) {
  options.order = read_order(line);
  options.reverse = line.has("reverse");
  options.folds_recursion = line.has("fold-recursion");
  if (options.folds_recursion && options.order == Order::kInput)
    throw UsageError("--fold-recursion, --flamechart: cannot be combined");
  if (!line.has("compat"))
    options.total = read_count(line, "total");
  options.lost = read_count(line, "lost").value_or(folded::Count{});
  if (const auto* text = line.text("max-depth")) {
    options.max_depth = parse_number<std::uint32_t>(*text);
    if (!options.max_depth || *options.max_depth == 0)
      refuse("max-depth", "not a number of frames", *text);
  }
}

}  // namespace

void add_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  painting::add_page_options(options);
  options.add_options()                                                //
      ("max-depth", text("N"), "merge frames deeper than N into one")  //
      ("colors,color", one_of("PALETTE", painting::palette_names()),
       ("palette: " + painting::palette_names() + " (default kind if names have marks, else warm)")
           .c_str())                                                                        //
      ("seed", text("N"), "random shades, reproducible for each N")                         //
      ("negate", "swap the colours and signs of differences")                               //
      ("fold-recursion", "merge frames of direct recursion into one")                       //
      ("reverse", "reverse each stack, to merge stacks from the function that ran")         //
      ("flamechart", "keep the order of the input, so that the x-axis is time")             //
      ("sort", one_of("HOW", kOrders), "order frames by name (default) or by width")        //
      ("total", text("COUNT"), "count that the whole width represents (default: the sum)")  //
      ("factor", text("N"), "multiply the shown counts by N (default 1)")                   //
      ("lost", text("COUNT"), "draw a frame for this number of lost samples");
}

void add_compatible_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()                                                //
      ("compat", "draw exactly as the script does")                    //
      ("cp", "keep the colours of functions in the file palette.map")  //
      ("hash", "choose similar shades for similar names")              //
      ("random", "choose random shades")                               //
      ("nameattr", text("FILE"), "read titles, links and classes of functions from FILE");
  painting::add_compatible_page_options(options);
}

Options read_options(const CommandLine& line) {
  Options options;
  static_cast<painting::PageOptions&>(options) =
      painting::read_page_options(line, default_title(line));
  read_colors(line, options);
  read_shape(line, options);
  painting::read_number(line, "factor", kFactors, options.factor);
  if (line.has("compat"))
    follow_perl(line, options);
  painting::read_text(line, "nameattr", options.name_attributes);
  if (!options.name_attributes.empty())  // each link needs a separate element
    options.embed_limit = 0;
  return options;
}

}  // namespace pe::flamesvg
