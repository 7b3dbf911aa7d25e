// Converts rules and rows of call frame information to entries that the kernel's unwinder can
// follow.
//
// A rule of libcommon/unwind has the same meaning in the kernel.  Most of the rows that no such
// rule describes also have an entry:
//
//     CFA = another register + n             the start of hand-written and realigning code
//     CFA = *(rsp + n) [+ m]                 OpenSSL's assembly
//     CFA = *(rbp + n) [+ m]                 the same, and gcc where it also moves other registers
//     the frame that a signal handler returns to
//
// Other rows are kRuleUnsupported, and such a stack is left to user space.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "recording/bpf/layout.h"
#include "recording/bpf/table_store.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/rule.h"

namespace pe::unwind {

/// Returns the entry that is equivalent to a rule.  kGeneral gives kRuleUnsupported, because it
/// needs its row.  So does kNotExecutable, which no table holds.
RuleEntry entry_of(Rule rule) noexcept;

/// Returns the entry that is equivalent to a row; `is_signal_frame` comes from its CIE.
RuleEntry entry_of(const CfiRow& row, bool is_signal_frame) noexcept;

constexpr bool operator==(const RuleEntry& a, const RuleEntry& b) noexcept {
  return a.kind == b.kind && a.base == b.base && a.frame_pointer_slot == b.frame_pointer_slot &&
         a.offset == b.offset;
}

// Numbers the rules: the kernel's array holds each rule once, whatever files use it.

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
