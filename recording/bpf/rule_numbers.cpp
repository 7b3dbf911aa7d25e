// SPDX-License-Identifier: MIT
#include "recording/bpf/rule_numbers.h"

#include <bit>

namespace pe::unwind {

RuleNumbers::RuleNumbers(TableStore& store, std::uint32_t max_rules)
    : entries_(store.rules()), max_rules_(max_rules) {
  number_of({.kind = kRuleNone, .base = 0, .frame_pointer_slot = 0, .offset = 0});
  number_of({.kind = kRuleUnsupported, .base = 0, .frame_pointer_slot = 0, .offset = 0});
}

std::uint32_t RuleNumbers::number_of(const RuleEntry& entry) {
  const auto key = std::bit_cast<std::uint64_t>(entry);
  if (const auto known = numbers_.find(key); known != numbers_.end())
    return known->second;
  if (used_ >= max_rules_ || new_in_file_ >= kMaxNewInFile) {
    ++refused_;
    return kNumberOfUnsupported;
  }
  const std::uint32_t number = used_++;
  ++new_in_file_;
  entries_[number] = entry;
  numbers_.emplace(key, number);
  return number;
}

}  // namespace pe::unwind
