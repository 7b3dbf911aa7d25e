// SPDX-License-Identifier: MIT
#include "painting/svg/narrow_runs.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iterator>

namespace pe::painting {
namespace {

constexpr double kFilled = 1;        // pixels: a run this wide is complete
constexpr double kUnseenGap = 0.05;  // pixels: a smaller gap between neighbours is invisible
constexpr unsigned kStep = 16;       // of a colour's channel

/// Rounds each channel of `c` to the middle of its step.
std::uint32_t rounded(Rgb c) {
  const auto middle = [](unsigned channel) { return channel / kStep * kStep + kStep / 2; };
  return middle(c.r) << 16U | middle(c.g) << 8U | middle(c.b);
}

}  // namespace

long long tenths(double pixels) {
  // Rounds like printf's "%.1f", which uses the exact value of the number.  The double 752.45 is
  // slightly smaller than 752.45, but multiplying it by 10 would round it up to 7524.5.
  const double nearest = std::nearbyint(pixels * 10);
  const double off = std::fma(pixels, 10, -nearest);
  const auto is_odd = [nearest] { return std::fmod(nearest, 2) != 0; };  // slow, rarely needed
  double shift = 0;
  if (off > 0.5 || (off == 0.5 && is_odd()))
    shift = 1;
  else if (off < -0.5 || (off == -0.5 && is_odd()))
    shift = -1;
  return static_cast<long long>(nearest + shift);
}

void append_tenths(std::string& out, long long value) {
  const fmt::format_int whole(value / 10);
  if (value < 0 && value > -10)
    out += '-';
  out.append(whole.data(), whole.size());
  if (value % 10 != 0) {
    out += '.';
    out += static_cast<char>('0' + std::abs(value % 10));
  }
}

void NarrowRuns::add(const Frame& frame, const Geometry& geometry) {
  if (open_.size() <= frame.depth)
    open_.resize(frame.depth + std::size_t{1});
  Run& run = open_[frame.depth];
  const bool goes_on =
      run.right > run.left && frame.left - run.right < kUnseenGap && run.right - run.left < kFilled;
  if (!goes_on) {
    close(frame.depth, geometry);
    run = {.left = frame.left, .right = frame.left};
  }
  run.right = frame.right;
  if (frame.right - frame.left > run.widest) {
    run.widest = frame.right - frame.left;
    run.fill = frame.fill;
  }
}

void NarrowRuns::close(std::uint32_t depth, const Geometry& geometry) {
  const Run& run = open_[depth];
  const long long left = tenths(run.left);
  const long long width = tenths(run.right) - left;
  if (width <= 0)
    return;
  std::string& path = paths_[rounded(run.fill)];
  path += 'M';
  append_tenths(path, left);
  path += ' ';
  append_tenths(path, tenths(geometry.frame_y(depth)));
  path += 'h';
  append_tenths(path, width);
  path += 'v';
  append_tenths(path, tenths(geometry.frame_height - 1));
  path += "h-";
  append_tenths(path, width);
  path += 'z';
}

void NarrowRuns::append_paths(std::string& out, const Geometry& geometry) {
  for (std::uint32_t depth = 0; depth < open_.size(); ++depth)
    close(depth, geometry);
  open_.clear();
  for (const auto& [color, path] : paths_)
    fmt::format_to(std::back_inserter(out), "<path fill=\"#{:06x}\" d=\"{}\"/>\n", color, path);
  paths_.clear();
}

}  // namespace pe::painting
