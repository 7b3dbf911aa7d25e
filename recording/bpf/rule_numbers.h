// Numbers the rules: the kernel's array holds each rule once, whatever files use it.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "recording/bpf/layout.h"
#include "recording/bpf/table_store.h"

namespace pe::unwind {

inline constexpr std::uint32_t kNumberOfNone = 0, kNumberOfUnsupported = 1;

class RuleNumbers {
 public:
  /// `store` must outlive this.  `max_rules` is at most kMaxRules.
  explicit RuleNumbers(TableStore& store, std::uint32_t max_rules = kMaxRules);

  /// Starts the rules of another file.
  void begin_file() noexcept { new_in_file_ = 0; }
  /// Returns kNumberOfUnsupported, and counts that, if there is no room for another rule.
  std::uint32_t number_of(const RuleEntry& entry);

  [[nodiscard]] std::uint32_t size() const noexcept { return used_; }
  /// How many rows did not get their rule.
  [[nodiscard]] std::size_t refused() const noexcept { return refused_; }

  /// The limit for new rules in one file, so that a malicious file cannot use up all numbers. clang
  /// and everything that it maps has 1,500.
  static constexpr std::uint32_t kMaxNewInFile = kMaxRules / 8;

 private:
  std::span<RuleEntry> entries_;
  std::uint32_t max_rules_;
  std::uint32_t used_ = 0, new_in_file_ = 0;
  std::size_t refused_ = 0;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> numbers_;
};

}  // namespace pe::unwind
