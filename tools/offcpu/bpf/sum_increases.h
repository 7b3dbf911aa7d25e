// Computes by how much the kernel's sums have grown since they were last read.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/hash_bytes.h"
#include "recording/bpf/bpf_object.h"

namespace pe::offcpu {

class SumIncreases {
 public:
  using KeyedSum = unwind::KeyedSum;

  /// Returns the sums that have grown, and by how much, in the order of the end of their last wait.
  /// `sums` must contain all sums.  Calls `look` about every 10 ms.
  std::vector<KeyedSum> take(std::span<const KeyedSum> sums, const std::function<void()>& look);

 private:
  struct Hash {
    std::size_t operator()(const unwind::SumKey& key) const noexcept {
      return hash_bytes({reinterpret_cast<const char*>(&key), sizeof key});
    }
  };
  struct Same {
    bool operator()(const unwind::SumKey& a, const unwind::SumKey& b) const noexcept;
  };

  boost::unordered_flat_map<unwind::SumKey, unwind::Sum, Hash, Same> known_;
};

}  // namespace pe::offcpu
