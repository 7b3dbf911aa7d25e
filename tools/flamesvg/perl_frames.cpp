// SPDX-License-Identifier: MIT
#include "flamesvg/perl_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "painting/numbers.h"
#include "painting/tree/stack_path.h"

namespace pe::flamesvg {
namespace {

using folded::PerlNumber;

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

void PerlFrames::add(std::string_view stack, const folded::PerlCounts& counts) {
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
