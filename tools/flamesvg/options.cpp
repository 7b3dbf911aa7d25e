// SPDX-License-Identifier: MIT
#include "flamesvg/options.h"

#include <fmt/format.h>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "base/characters.h"
#include "base/cli/command_line.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "painting/numbers.h"
#include "painting/page_options.h"
#include "painting/svg/colors.h"
#include "painting/tree/stack_path.h"

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

namespace {

constexpr PerlOption kOptions[] = {
    {.name = "title", .takes = Takes::kText, .empty_is_none = true},
    {.name = "subtitle", .takes = Takes::kText},
    {.name = "width", .takes = Takes::kInteger},
    {.name = "height", .takes = Takes::kInteger},
    {.name = "minwidth", .takes = Takes::kText},  // a number, or a percentage
    {.name = "fonttype", .takes = Takes::kText},
    {.name = "fontsize", .takes = Takes::kNumber},
    {.name = "fontwidth", .takes = Takes::kNumber},
    {.name = "countname", .takes = Takes::kText},
    {.name = "nametype", .takes = Takes::kText},
    {.name = "colors", .takes = Takes::kText},
    {.name = "bgcolors", .takes = Takes::kText, .empty_is_none = true},
    {.name = "hash"},
    {.name = "random"},
    {.name = "cp"},
    {.name = "reverse"},
    {.name = "inverted"},
    {.name = "flamechart"},
    {.name = "negate"},
    {.name = "total", .takes = Takes::kText, .empty_is_none = true},
    {.name = "factor", .takes = Takes::kNumber},
    {.name = "nameattr", .takes = Takes::kText},
    {.name = "notes", .takes = Takes::kText},
    {.name = "encoding", .takes = Takes::kText},
    {.name = "help", .takes = Takes::kUsage},
};

constexpr std::string_view kCompat[] = {"--compat"};

constexpr PerlName kNames[] = {
    {.name = "flamegraph.pl", .extra_args = kCompat, .options = kOptions},
};

/// Replaces character references by characters.  flamegraph.pl copies its texts into the file, so
/// the scripts that call it escape them.
void unescape_texts(painting::PageStyle& page) {
  constexpr std::pair<std::string_view, char> kReferences[] = {
      {"&lt;", '<'},   {"&gt;", '>'},    {"&quot;", '"'},
      {"&#39;", '\''}, {"&apos;", '\''}, {"&amp;", '&'},
  };
  for (std::string* text : {&page.title, &page.subtitle, &page.count_name})
    for (std::size_t at = text->find('&'); at != std::string::npos; at = text->find('&', at + 1))
      for (const auto& [reference, character] : kReferences)
        if (std::string_view(*text).substr(at).starts_with(reference)) {
          text->replace(at, reference.size(), 1, character);
          break;
        }
}

/// Returns the number that perl reads from a text: that at its start, or 0.
double number_at_start(const std::string& text) {
  const std::size_t digit = text.find_first_not_of(" \t");
  const bool is_decimal = digit != std::string::npos && !text.substr(digit).starts_with("0x") &&
                          (is_digit(text[digit]) || text[digit] == '.' || text[digit] == '+');
  const double number = is_decimal ? std::strtod(text.c_str(), nullptr) : 0;
  return std::isfinite(number) ? number : 0;
}

}  // namespace

constinit const std::span<const PerlName> kPerlNames = kNames;

void follow_perl(const CommandLine& line, Options& options) {
  options.is_perl = true;
  painting::PageStyle& page = options.page;
  page.geometry.subtitle_overlaps = true;
  if (!line.has("width"))
    page.is_auto_width = false;
  if (!line.has("height"))
    page.geometry.frame_height = 16;
  if (!line.has("fonttype"))
    page.font_family = painting::font_family_of("Verdana");
  if (!page.background)
    page.background = painting::default_background(options.palette);
  if (!line.has("bgcolors") && !line.has("dark"))
    page.theme = painting::Theme::kLight;
  if (const auto* total = line.text("total"))
    options.perl_total = number_at_start(*total);
  if (options.factor == 0)
    painting::refuse("factor", "not a number above 0", *line.text("factor"));
  unescape_texts(page);
  page.whole_name = page.count_name;
  page.cuts_title = false;
  page.labels_root = false;
}

std::string_view perl_shown_name(std::string_view name) {
  const bool is_unknown =
      name.ends_with("_[l]") || name.ends_with("_[o]") || name.ends_with("_[t]");
  return is_unknown ? name : painting::without_mark(name);
}

namespace {

using painting::PerlNumber;

/// Splits as perl's split() does: without empty frames at the end.
std::vector<std::string_view> frames_of(std::string_view stack) {
  std::vector<std::string_view> frames{""};  // the root
  stack = painting::without_empty_end(stack);
  for (std::size_t begin = 0; begin < stack.size();) {
    const std::size_t end = std::min(stack.find(';', begin), stack.size());
    frames.push_back(stack.substr(begin, end - begin));
    begin = end + 1;
  }
  return frames;
}

/// Returns the count for the page's script, which has its own arithmetic.
folded::Count as_count(double value) {
  constexpr double kLimit = 18446744073709551616.0;  // 2^64
  if (!(value > 0))
    return {};
  if (value >= kLimit)
    return folded::Count::max();
  const double whole = std::floor(value);
  const double billionths = std::floor((value - whole) * folded::Count::kOne);
  return {.whole = static_cast<std::uint64_t>(whole),
          .billionths = static_cast<std::uint32_t>(billionths)};
}

/// The script prints counts without decimals, and calculates shares from what it has printed.
double rounded(double count) { return std::nearbyint(count); }

}  // namespace

void PerlFrames::add(std::string_view stack, const painting::PerlCounts& counts) {
  std::optional<double> delta;
  if (counts.before) {
    delta = counts.count.minus(*counts.before);
    largest_delta_ = std::max(largest_delta_, std::abs(*delta));
  }
  const std::vector<std::string_view> names = frames_of(stack);
  std::size_t same = 0;
  while (same < std::min(names.size(), open_.size()) && open_[same].name == names[same])
    ++same;
  PerlNumber next = position_;
  next += counts.count;
  const bool stays = next.text() == position_.text();
  close_from(same, stays);
  for (std::size_t depth = same; depth < names.size(); ++depth) {
    const bool is_leaf = depth + 1 == names.size();
    open(names[depth], delta && !is_leaf ? std::optional(0.0) : delta);
  }
  position_ = next;
  if (!stays)
    closed_.clear();
}

void PerlFrames::close_from(std::size_t depth, bool may_be_replaced) {
  for (; open_.size() > depth; open_.pop_back())
    close(open_.back(), may_be_replaced);
}

void PerlFrames::close(const Open& open, bool may_be_replaced) {
  Frame& frame = frames_[open.frame];
  frame.end = position_.printed();
  if (closed_.empty() && !may_be_replaced)
    return;
  const auto [closed, is_new] = closed_.try_emplace({open.name, frame.depth}, open.frame);
  if (is_new)
    return;
  Frame& before = frames_[closed->second];
  before.is_replaced = true;
  if (!frame.delta)
    frame.delta = before.delta;
  closed->second = open.frame;
}

void PerlFrames::open(std::string_view name, std::optional<double> delta) {
  const bool is_root = open_.empty();
  if (!is_root)
    frames_.emplace_back();
  const std::size_t frame = is_root ? 0 : frames_.size() - 1;
  frames_[frame].depth = static_cast<std::uint32_t>(open_.size());
  frames_[frame].start = position_;
  frames_[frame].delta = delta;
  open_.push_back({std::string(name), frame});
}

double perl_total(const PerlFrames& frames, const Options& options) {
  return std::max(frames.total().as_double(), options.perl_total);
}

painting::Layout lay_out_as_perl(const PerlFrames& frames, const Options& options) {
  const double total = perl_total(frames, options);
  const double pixels_per_count = options.page.geometry.usable_width() / total;
  const painting::MinWidth& min = options.min_width;
  const double smallest = min.is_percent ? total * min.value / 100 : min.value / pixels_per_count;
  painting::Layout layout{.boxes = {}, .levels = 1, .towers = {}, .whole = as_count(total)};
  painting::NodeId node = 0;
  for (const PerlFrames::Frame& frame : frames.frames()) {
    const painting::NodeId current = node++;
    if (frame.is_replaced || frame.end.minus(frame.start) < smallest)
      continue;
    constexpr double kLeft = painting::Geometry::kSideMargin;
    const double end = current == painting::kRoot ? total : frame.end.as_double();
    layout.boxes.push_back({.node = current,
                            .depth = frame.depth,
                            .start = as_count(frame.start.as_double()),
                            .count = as_count(end - frame.start.as_double()),
                            .left = kLeft + frame.start.as_double() * pixels_per_count,
                            .right = kLeft + end * pixels_per_count});
    layout.levels = std::max(layout.levels, frame.depth + 1);
  }
  return layout;
}

std::string perl_detail(const PerlFrames& frames, const Options& options, painting::NodeId node) {
  const PerlFrames::Frame& frame = frames.frames()[node];
  const double total = perl_total(frames, options);
  const bool is_root = node == painting::kRoot;
  const double count = (is_root ? total : frame.end.minus(frame.start)) * options.factor;
  const std::string text =
      fmt::format("{} {}", painting::grouped_digits(count), options.page.count_name);
  if (is_root)
    return text + ", 100%";
  const double whole = total * options.factor;
  std::string share = fmt::format("{:.2f}%", 100 * rounded(count) / whole);
  if (frame.delta) {
    const double shown = options.negate ? -*frame.delta : *frame.delta;
    share += fmt::format("; {}{:.2f}%", shown > 0 ? "+" : "", shown == 0 ? 0 : 100 * shown / whole);
  }
  return fmt::format("{}, {}", text, share);
}

}  // namespace pe::flamesvg
