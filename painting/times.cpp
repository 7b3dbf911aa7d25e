// SPDX-License-Identifier: MIT
#include "painting/times.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/clock.h"
#include "base/io/compression.h"

namespace pe::painting {

Ticks::Ticks(std::span<const folded::Count> counts) {
  for (const folded::Count count : counts)
    refine(count);
}

Ticks::Ticks(const CallTree& tree, folded::Count whole,
             std::initializer_list<std::span<const folded::Count>> more) {
  refine(whole);
  for (NodeId node = kRoot; node < tree.size(); ++node)
    refine(tree.self(node));
  for (const auto& counts : more)
    for (const folded::Count count : counts)
      refine(count);
  while (decimals_ > 0 && of(whole) == std::numeric_limits<std::uint64_t>::max()) {
    --decimals_;
    per_one_ /= 10;
  }
}

void Ticks::refine(folded::Count count) {
  constexpr unsigned kMost = 9;
  while (count.billionths != 0 && decimals_ < kMost &&
         count.billionths % (folded::Count::kOne / per_one_) != 0) {
    ++decimals_;
    per_one_ *= 10;
  }
}

namespace {

/// A part as it is written.
struct Written {
  std::uint64_t step;
  std::uint32_t place;
  std::uint64_t ticks;
};

/// Joins the parts of one place in one step.
void join_equal(std::vector<Written>& parts) {
  const auto key = [](const Written& part) { return std::tuple(part.step, part.place); };
  if (!std::ranges::is_sorted(parts, {}, key))
    std::ranges::sort(parts, {}, key);
  std::size_t kept = 0;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (key(parts[i]) == key(parts[kept]))
      parts[kept].ticks = saturated_sum(parts[kept].ticks, parts[i].ticks);
    else
      parts[++kept] = parts[i];
  }
  parts.resize(kept + 1);
}

std::string columns(const std::vector<Written>& parts, std::uint64_t steps) {
  std::string sizes;
  std::string places;
  std::string counts;
  std::size_t at = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::size_t first = at;
    std::uint32_t before = 0;
    for (; at < parts.size() && parts[at].step == step; ++at) {
      append_leb128(places, parts[at].place - before);
      append_leb128(counts, parts[at].ticks);
      before = parts[at].place;
    }
    append_leb128(sizes, at - first);
  }
  return sizes + places + counts;
}

}  // namespace

void Times::renumber(std::span<const NodeId> numbers) {
  for (Part& part : parts_)
    part.node = numbers[part.node];
}

std::string Times::packed(std::span<const std::uint32_t> places, std::uint64_t limit) const {
  if (parts_.empty())
    return {};
  const auto by_time = [](const Part& a, const Part& b) { return a.start_ns < b.start_ns; };
  const auto [first, last] = std::ranges::minmax_element(parts_, by_time);
  const std::uint64_t start_ns = first->start_ns;
  const std::uint64_t length_ns = last->start_ns - start_ns;
  std::uint64_t step_ns = 0;  // times are multiples of it, as those of stackfold --every
  for (const Part& part : parts_)
    if (step_ns == 0 || part.start_ns % step_ns != 0)
      step_ns = std::gcd(step_ns, part.start_ns);
  if (step_ns == 0)
    step_ns = kNsPerSecond;  // the length of a profile's only step
  while (length_ns / step_ns >= kMostSteps)
    step_ns *= 2;

  std::vector<Count> counts;
  counts.reserve(parts_.size());
  for (const Part& part : parts_)
    counts.push_back(part.count);
  const Ticks ticks(counts);
  std::vector<Written> written;
  written.reserve(parts_.size());
  for (const Part& part : parts_)
    written.push_back({.step = (part.start_ns - start_ns) / step_ns,
                       .place = places[part.node],
                       .ticks = ticks.of(part.count)});
  for (std::uint64_t steps = length_ns / step_ns + 1;; steps = (steps + 1) / 2, step_ns *= 2) {
    join_equal(written);
    std::string numbers;
    for (const std::uint64_t number :
         {std::uint64_t{1}, start_ns / kNsPerSecond, start_ns % kNsPerSecond, step_ns, steps,
          std::uint64_t{ticks.decimals()}})
      append_leb128(numbers, number);
    constexpr int kDeflateLevel = 6;  // of the hour in times.h, level 9 makes 0.4 % less
    std::string bytes = deflate(numbers + columns(written, steps), kDeflateLevel);
    if ((bytes.size() + 2) / 3 * 4 <= limit)
      return bytes;
    if (steps == 1)
      return {};
    for (Written& part : written)
      part.step /= 2;
  }
}

}  // namespace pe::painting
