// SPDX-License-Identifier: MIT
#include "recording/bpf/kernel_rule.h"

#include <bit>
#include <limits>
#include <optional>

#include "unwind/cfi/expression.h"

namespace pe::unwind {
namespace {

using architecture::kFramePointer;
using architecture::kInstructionPointer;
using architecture::kStackPointer;
using architecture::kWordBytes;

constexpr RuleEntry kUnsupported{
    .kind = kRuleUnsupported, .base = 0, .frame_pointer_slot = 0, .offset = 0};

RuleEntry entry(RuleEntryKind kind, std::int64_t offset = 0, std::uint16_t slot = 0,
                unsigned base = 0) noexcept {
  if (offset < std::numeric_limits<std::int32_t>::min() ||
      offset > std::numeric_limits<std::int32_t>::max())
    return kUnsupported;
  return {.kind = static_cast<std::uint8_t>(kind),
          .base = static_cast<std::uint8_t>(base),
          .frame_pointer_slot = slot,
          .offset = static_cast<std::int32_t>(offset)};
}

/// Whether an expression gives `offset` from the stack pointer as the place of a saved register.
bool is_saved_at(const RegisterRule& rule, std::int64_t offset) noexcept {
  return rule.kind == RegisterRule::Kind::kExpression &&
         simple_expression(rule.expression) ==
             SimpleExpression{.register_number = kStackPointer, .offset = offset};
}

/// Converts the frame that rt_sigreturn(2) restores.  Accepts only the kernel's own layout.
RuleEntry entry_of_signal_frame(const CfiRow& row) noexcept {
  const RegisterRule& sp = row.registers[kStackPointer];
  const bool has_cfa =
      row.cfa.is_expression &&
      simple_expression(row.cfa.expression) == SimpleExpression{.register_number = kStackPointer,
                                                                .offset = kSignalStackPointer,
                                                                .is_load = true};
  const bool has_sp = sp.kind == RegisterRule::Kind::kSameValue ||  // this means the CFA
                      is_saved_at(sp, kSignalStackPointer);
  return has_cfa && has_sp &&
                 is_saved_at(row.registers[kInstructionPointer], kSignalInstructionPointer) &&
                 is_saved_at(row.registers[kFramePointer], kSignalFramePointer)
             ? entry(kRuleSignal)
             : kUnsupported;
}

/// Returns RuleEntry::frame_pointer_slot; nullopt if the caller's frame pointer is anywhere else.
std::optional<std::uint16_t> frame_pointer_place(const RegisterRule& rule) noexcept {
  switch (rule.kind) {
    case RegisterRule::Kind::kSameValue:
    case RegisterRule::Kind::kUndefined:  // the register is as good as any other value
      return std::uint16_t{kFramePointerKept};
    case RegisterRule::Kind::kOffset: {
      constexpr std::int64_t kWord = kWordBytes;
      if (rule.offset >= 0 || rule.offset % kWord != 0 ||
          rule.offset < -kWord * std::int64_t{kMaxFramePointerSlot})
        return std::nullopt;
      return static_cast<std::uint16_t>(-rule.offset / kWord);
    }
    case RegisterRule::Kind::kExpression:
      if (simple_expression(rule.expression) == SimpleExpression{.register_number = kFramePointer})
        return std::uint16_t{kFramePointerAtItself};
      return std::nullopt;
    case RegisterRule::Kind::kValueOffset:
    case RegisterRule::Kind::kRegister:
    case RegisterRule::Kind::kValue:
      break;
  }
  return std::nullopt;
}

RuleEntry entry_of_register(const CfaRule& cfa, std::uint16_t slot) noexcept {
  if (cfa.register_number == kStackPointer)
    return entry(kRuleStackPointer, cfa.offset, slot);
  if (cfa.register_number == kFramePointer)
    return entry(kRuleFramePointer, cfa.offset, slot);
  if (cfa.register_number >= kInstructionPointer)
    return kUnsupported;
  return entry(kRuleRegister, cfa.offset, slot, static_cast<unsigned>(cfa.register_number));
}

RuleEntry entry_of_load(const SimpleExpression& load, std::uint16_t slot) noexcept {
  constexpr std::uint64_t kMaxWords = std::numeric_limits<std::uint8_t>::max();
  const bool is_known =
      load.register_number == kStackPointer || load.register_number == kFramePointer;
  if (!load.is_load || !is_known || load.addend % kWordBytes != 0 ||
      load.addend / kWordBytes > kMaxWords)
    return kUnsupported;
  return entry(load.register_number == kStackPointer ? kRuleLoadStack : kRuleRealigned, load.offset,
               slot, static_cast<unsigned>(load.addend / kWordBytes));
}

/// Whether a register's rule has this kind, and the expression fp + offset.
bool is_by_frame_pointer(const RegisterRule& rule, RegisterRule::Kind kind,
                         std::int64_t offset) noexcept {
  return rule.kind == kind &&
         simple_expression(rule.expression) ==
             SimpleExpression{.register_number = kFramePointer, .offset = offset};
}

/// Whether the caller is on another stack, to which the frame pointer leads
/// (unwind/walk/go_frames.h).
bool switches_stacks(const CfiRow& row) noexcept {
  constexpr std::int64_t kWord = kWordBytes;
  using Kind = RegisterRule::Kind;
  return is_by_frame_pointer(row.registers[kInstructionPointer], Kind::kExpression, kWord) &&
         is_by_frame_pointer(row.registers[kFramePointer], Kind::kExpression, 0) &&
         is_by_frame_pointer(row.registers[kStackPointer], Kind::kValue, 2 * kWord);
}

RuleEntry entry_of_general_row(const CfiRow& row) noexcept {
  if (switches_stacks(row))
    return entry(kRuleSwitch);
  const RegisterRule& return_address = row.registers[kInstructionPointer];
  const auto slot = frame_pointer_place(row.registers[kFramePointer]);
  const bool is_return_address_below_cfa =
      return_address.kind == RegisterRule::Kind::kOffset &&
      return_address.offset == -static_cast<std::int64_t>(kWordBytes);
  if (!slot || !is_return_address_below_cfa ||
      row.registers[kStackPointer].kind != RegisterRule::Kind::kSameValue)
    return kUnsupported;
  if (!row.cfa.is_expression)
    return entry_of_register(row.cfa, *slot);
  const auto load = simple_expression(row.cfa.expression);
  return load ? entry_of_load(*load, *slot) : kUnsupported;
}

}  // namespace

RuleEntry entry_of(Rule rule) noexcept {
  const std::int64_t bytes = static_cast<std::int64_t>(kWordBytes) * rule.cfa_words();
  const auto slot = static_cast<std::uint16_t>(rule.frame_pointer_slot());
  switch (rule.kind()) {
    case RuleKind::kStackPointer:
      return entry(kRuleStackPointer, bytes, slot);
    case RuleKind::kFramePointer:
      return entry(kRuleFramePointer, bytes, slot);
    case RuleKind::kPlt:
      return entry(kRulePlt, rule.cfa_words());
    case RuleKind::kRealigned:
      return slot == 0 ? entry(kRuleRealigned, -bytes, kFramePointerAtItself) : kUnsupported;
    case RuleKind::kEnd:
      return entry(kRuleEnd);
    case RuleKind::kNone:
      return entry(kRuleNone);
    case RuleKind::kSavedStackPointer:  // only of runtimes' code, which the kernel does not walk
    case RuleKind::kGeneral:
    case RuleKind::kNotExecutable:
      break;
  }
  return kUnsupported;
}

RuleEntry entry_of(const CfiRow& row, bool is_signal_frame) noexcept {
  const Rule rule = architecture::rule_of(row, is_signal_frame);
  if (rule.kind() != RuleKind::kGeneral)
    return entry_of(rule);
  return is_signal_frame ? entry_of_signal_frame(row) : entry_of_general_row(row);
}

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
