// SPDX-License-Identifier: MIT
#include "offcpu/bpf/sum_increases.h"

#include <cstring>

#include "base/sort_in_steps.h"

namespace pe::offcpu {

bool SumIncreases::Same::operator()(const unwind::SumKey& a,
                                    const unwind::SumKey& b) const noexcept {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

std::vector<SumIncreases::KeyedSum> SumIncreases::take(std::span<const KeyedSum> sums,
                                                       const std::function<void()>& look) {
  constexpr std::size_t kOfTurn = 1024;
  std::vector<KeyedSum> grown;
  for (std::size_t i = 0; const auto& [key, sum] : sums) {
    if (++i % kOfTurn == 0)
      look();
    auto& before = known_[key];
    // The kernel updates the parts of a sum one after the other: one part may be of the next
    // reading.
    if (sum.ns > before.ns)
      grown.push_back({key, {sum.ns - before.ns, sum.count - before.count, sum.last_ns}});
    else if (sum.ns == before.ns)
      continue;
    before = sum;
  }
  const auto is_before = [](const KeyedSum& a, const KeyedSum& b) {
    return a.sum.last_ns != b.sum.last_ns ? a.sum.last_ns < b.sum.last_ns : a.key.tid < b.key.tid;
  };
  sort_in_steps(grown, is_before, [&look] {
    look();
    return true;
  });
  return grown;
}

}  // namespace pe::offcpu
