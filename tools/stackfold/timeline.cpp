// SPDX-License-Identifier: MIT
#include "stackfold/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "folded/facts.h"

namespace pe::folded {
namespace {

void join(Count& to, Count count) {
  static_cast<void>(to.add(count));  // the stack's own count saturates, too, and reports it
}

[[noreturn]] void refuse() {
  throw Error(
      fmt::format("--every: more than {} steps from the first sample to the last "
                  "(choose a longer step)",
                  Timeline::kMostSteps));
}

/// Sorts by step and stack, and adds up those of the same step and stack.
template <typename Item, typename Add>
void join_equal(std::vector<Item>& items, Add&& add) {
  // There may be millions, which tuples would make slow in builds without optimization.
  std::ranges::sort(items, [](const Item& a, const Item& b) {
    return a.step != b.step ? a.step < b.step : a.stack < b.stack;
  });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (items[i].step == items[kept].step && items[i].stack == items[kept].stack)
      add(items[kept], items[i]);
    else
      items[++kept] = items[i];
  }
  items.resize(items.empty() ? 0 : kept + 1);
}

}  // namespace

std::int32_t Timeline::step_of(std::uint64_t time_ns) const {
  const bool is_earlier = time_ns < *origin_ns_;
  const std::uint64_t distance = is_earlier ? *origin_ns_ - time_ns : time_ns - *origin_ns_;
  const std::uint64_t steps = distance / step_ns_ + (is_earlier && distance % step_ns_ != 0);
  if (steps > kMostSteps)
    refuse();
  const auto step = static_cast<std::int32_t>(steps);
  return is_earlier ? -step : step;
}

std::uint64_t Timeline::start_of(std::int32_t step) const {
  return *origin_ns_ + static_cast<std::uint64_t>(std::int64_t{step}) * step_ns_;
}

void Timeline::note(std::uint64_t begin_ns, std::uint64_t end_ns) {
  if (!origin_ns_)
    origin_ns_ = begin_ns;
  first_ = std::min(first_, step_of(begin_ns));
  last_ = std::max(last_, step_of(end_ns));
  if (last_ - first_ >= kMostSteps)
    refuse();
}

void Timeline::add(std::uint64_t time_ns, StackId stack, Count count) {
  push(Part{step_of(time_ns), stack, count});
}

void Timeline::add_span(std::uint64_t begin_ns, std::uint64_t end_ns, StackId stack) {
  if (end_ns <= begin_ns)
    return add(begin_ns, stack, {});
  const std::int32_t first = step_of(begin_ns);
  const std::int32_t last = step_of(end_ns - 1);
  if (first == last)
    return push(Part{first, stack, count_of(end_ns - begin_ns)});
  push(Part{first, stack, count_of(start_of(first + 1) - begin_ns)});
  push(Part{last, stack, count_of(end_ns - start_of(last))});
  if (last - first > 1) {
    push(Turn{first + 1, stack, 1});
    push(Turn{last, stack, -1});
  }
}

void Timeline::push(const Part& part) {
  parts_.push_back(part);
  if (parts_.size() < join_parts_at_)
    return;
  join_equal(parts_, [](Part& to, const Part& from) { join(to.count, from.count); });
  join_parts_at_ = std::max(kLeastToJoin, 2 * parts_.size());
}

void Timeline::push(const Turn& turn) {
  turns_.push_back(turn);
  if (turns_.size() < join_turns_at_)
    return;
  join_equal(turns_, [](Turn& to, const Turn& from) { to.times += from.times; });
  join_turns_at_ = std::max(kLeastToJoin, 2 * turns_.size());
}

void Timeline::renumber(std::span<const std::optional<StackId>> numbers) {
  const auto renumber_all = [&](auto& items) {
    std::erase_if(items, [&](const auto& item) { return !numbers[item.stack]; });
    for (auto& item : items)
      item.stack = *numbers[item.stack];
  };
  renumber_all(parts_);
  renumber_all(turns_);
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity): one merge of two sorted lists
void Timeline::visit(std::span<const std::uint32_t> rank_of, const Visit& visit) {
  const auto key = [&](const auto& item) { return std::tuple(item.step, rank_of[item.stack]); };
  std::ranges::sort(parts_, {}, key);
  std::ranges::sort(turns_, {}, key);
  const auto is_before = [&](StackId a, StackId b) { return rank_of[a] < rank_of[b]; };
  std::map<StackId, std::int64_t, decltype(is_before)> whole(is_before);  // stack: how many times
  const auto whole_steps = [this](std::int64_t times) {
    return folded::times(count_of(step_ns_), static_cast<std::uint64_t>(times))
        .value_or(Count::max());
  };
  auto part = parts_.begin();
  auto turn = turns_.begin();
  for (std::int32_t step = first_; step <= last_; ++step) {
    for (; turn != turns_.end() && turn->step == step; ++turn)
      if ((whole[turn->stack] += turn->times) == 0)
        whole.erase(turn->stack);
    const auto has_part = [&] { return part != parts_.end() && part->step == step; };
    for (auto next = whole.begin(); next != whole.end() || has_part();) {
      const bool is_part =
          has_part() && (next == whole.end() || !is_before(next->first, part->stack));
      const StackId stack = is_part ? part->stack : next->first;
      Count count;
      if (next != whole.end() && next->first == stack)
        count = whole_steps((next++)->second);
      for (; has_part() && part->stack == stack; ++part)
        join(count, part->count);
      visit(step, stack, count);
    }
  }
}

std::string Timeline::label(std::int32_t step) const {
  const auto since_first = [this](std::int32_t other) {
    return static_cast<std::uint64_t>(std::int64_t{other} - first_) * step_ns_;
  };
  return time_root(since_first(step), since_first(last_), step_ns_);
}

}  // namespace pe::folded
