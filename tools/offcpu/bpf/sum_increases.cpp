// SPDX-License-Identifier: MIT
#include "offcpu/bpf/sum_increases.h"

#include <algorithm>
#include <cstring>

namespace pe::offcpu {

bool SumIncreases::Same::operator()(const unwind::SumKey& a,
                                    const unwind::SumKey& b) const noexcept {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

std::vector<SumIncreases::KeyedSum> SumIncreases::take(std::span<const KeyedSum> sums) {
  std::vector<KeyedSum> grown;
  for (const auto& [key, sum] : sums) {
    auto& before = known_[key];
    // The kernel updates the parts of a sum one after the other: one part may be of the next
    // reading.
    if (sum.ns > before.ns)
      grown.push_back({key, {sum.ns - before.ns, sum.count - before.count, sum.last_ns}});
    else if (sum.ns == before.ns)
      continue;
    before = sum;
  }
  std::sort(grown.begin(), grown.end(), [](const KeyedSum& a, const KeyedSum& b) {
    return a.sum.last_ns != b.sum.last_ns ? a.sum.last_ns < b.sum.last_ns : a.key.tid < b.key.tid;
  });
  return grown;
}

}  // namespace pe::offcpu
