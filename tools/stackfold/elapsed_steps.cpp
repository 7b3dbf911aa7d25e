// SPDX-License-Identifier: MIT
#include "stackfold/elapsed_steps.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace pe::fold {

std::vector<TimeInStep> scaled_steps(folded::FoldedCounts& counts, std::uint64_t ns) {
  folded::Timeline& steps = *counts.timeline();
  std::vector<std::uint32_t> ranks(counts.size());
  std::iota(ranks.begin(), ranks.end(), 0U);
  double sum = 0;
  steps.visit(ranks, [&](auto, auto, folded::Count count) { sum += count.as_double(); });
  // The sums are rounded, not the parts.  Added up in the same order, they end at `ns`.
  std::vector<TimeInStep> times;
  double reached = 0;
  std::uint64_t given = 0;
  steps.visit(ranks, [&](std::int32_t step, folded::StackId stack, folded::Count count) {
    reached += count.as_double();
    const double until = reached / sum * static_cast<double>(ns);
    const std::uint64_t whole =
        reached >= sum || until >= static_cast<double>(ns) ? ns : static_cast<std::uint64_t>(until);
    times.push_back({step, stack, whole - std::min(whole, given)});
    given = std::max(given, whole);
  });
  return times;
}

namespace {

using ByStack = std::map<folded::StackId, std::uint64_t>;

/// Moves up to `room` from `held` to `times`, of each stack the same share.
void fill(std::int32_t step, std::uint64_t room, ByStack& held, std::vector<TimeInStep>& times) {
  double all = 0;
  for (const auto& [stack, ns] : held)
    all += static_cast<double>(ns);
  const bool fits = all <= static_cast<double>(room);
  const double share = fits ? 1 : static_cast<double>(room) / all;
  for (auto next = held.begin(); next != held.end();) {
    auto& [stack, ns] = *next;
    const std::uint64_t part =
        fits ? ns : std::min(ns, static_cast<std::uint64_t>(static_cast<double>(ns) * share));
    if (part > 0)
      times.push_back({step, stack, part});
    ns -= part;
    next = ns == 0 ? held.erase(next) : std::next(next);
  }
}

}  // namespace

std::vector<TimeInStep> spread_back(const std::vector<TimeInStep>& times, std::int32_t first,
                                    const std::function<std::uint64_t(std::int32_t)>& room_of) {
  std::vector<TimeInStep> spread;
  ByStack held;
  auto next = times.rbegin();
  for (std::int32_t step = 0; next != times.rend() || !held.empty(); --step) {
    if (held.empty())
      step = next->step;
    for (; next != times.rend() && next->step == step; ++next)
      held[next->stack] += next->ns;
    const std::uint64_t room = step <= first ? ~std::uint64_t{0} : room_of(step);
    if (room > 0)
      fill(step, room, held, spread);
  }
  return spread;
}

}  // namespace pe::fold
