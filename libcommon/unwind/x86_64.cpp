// SPDX-License-Identifier: MIT
#include "unwind/x86_64.h"

#include <dwarf.h>

#include <cstring>

#include "objects/image.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/cfi/expression.h"
#include "unwind/x86_64_calls.h"

namespace pe::unwind::x86_64 {
namespace {

using Kind = RegisterRule::Kind;

constexpr std::int64_t kWord = kWordBytes;

std::uint8_t byte_at(Bytes bytes, std::size_t index) noexcept {
  return std::to_integer<std::uint8_t>(bytes[index]);
}

/// Converts an offset to words below the CFA; nullopt if that is not a whole number of 1..limit.
std::optional<std::uint32_t> words_below(std::int64_t offset, std::uint32_t limit) noexcept {
  if (offset >= 0 || offset % kWord != 0 || offset < -kWord * std::int64_t{limit})
    return std::nullopt;
  return static_cast<std::uint32_t>(-offset / kWord);
}

/// Returns the slot of the caller's frame pointer; 0 if the register still holds it.  "Undefined"
/// also gives 0: nothing needs the value, and the register is as good as any other.
std::optional<std::uint32_t> frame_pointer_slot(const CfiRow& row) noexcept {
  const RegisterRule& rule = row.registers[kFramePointer];
  if (rule.kind == Kind::kSameValue || rule.kind == Kind::kUndefined)
    return 0;
  return rule.kind == Kind::kOffset ? words_below(rule.offset, Rule::kMaxSlot) : std::nullopt;
}

/// Matches the linker's expression for .plt.  Every entry of .plt pushes one word, and the
/// expression gives the byte from which on it is pushed:
///
/// breg7 (rsp) 8, breg16 (rip) 0, lit15, and, litN, ge, lit3, shl, plus.
std::optional<Rule> plt_rule(const CfiRow& row) noexcept {
  constexpr std::array<std::uint8_t, 11> kPattern = {DW_OP_breg7, 8,         DW_OP_breg16, 0,
                                                     DW_OP_lit15, DW_OP_and, DW_OP_lit0,   DW_OP_ge,
                                                     DW_OP_lit3,  DW_OP_shl, DW_OP_plus};
  constexpr std::size_t kVaries = 6;
  const Bytes expression = row.cfa.expression;
  if (expression.size() != kPattern.size() || frame_pointer_slot(row) != 0)
    return std::nullopt;
  for (std::size_t i = 0; i < kPattern.size(); ++i)
    if (i != kVaries && byte_at(expression, i) != kPattern[i])
      return std::nullopt;
  const unsigned from = byte_at(expression, kVaries) - DW_OP_lit0;
  return from < 32 ? std::optional(Rule(RuleKind::kPlt, from)) : std::nullopt;
}

/// Matches gcc's realigned stacks.  The CFA was saved near the frame pointer (breg6 (rbp) -8n,
/// deref).  The frame pointer points at the caller's frame pointer (breg6 0).
std::optional<Rule> realigned_rule(const CfiRow& row) noexcept {
  const RegisterRule& saved = row.registers[kFramePointer];
  const auto cfa = simple_expression(row.cfa.expression);
  constexpr SimpleExpression kFramePointerItself{.register_number = kFramePointer};
  if (!cfa || cfa->register_number != kFramePointer || !cfa->is_load || cfa->addend != 0 ||
      saved.kind != Kind::kExpression || simple_expression(saved.expression) != kFramePointerItself)
    return std::nullopt;
  const auto words = words_below(cfa->offset, Rule::kMaxCfaWords);
  return words ? std::optional(Rule(RuleKind::kRealigned, *words)) : std::nullopt;
}

std::optional<Rule> offset_rule(const CfiRow& row) noexcept {
  const CfaRule& cfa = row.cfa;
  const auto slot = frame_pointer_slot(row);
  const bool fits = cfa.offset >= 0 && cfa.offset % kWord == 0 &&
                    cfa.offset / kWord <= std::int64_t{Rule::kMaxCfaWords};
  const bool is_known =
      cfa.register_number == kStackPointer || cfa.register_number == kFramePointer;
  if (!slot || !fits || !is_known)
    return std::nullopt;
  return Rule(
      cfa.register_number == kStackPointer ? RuleKind::kStackPointer : RuleKind::kFramePointer,
      static_cast<std::uint32_t>(cfa.offset / kWord), *slot);
}

Step follow_plt(Rule rule, FrameState& state, const StackView& stack) noexcept {
  constexpr std::uint64_t kEntryMask = 15;
  const bool has_pushed = (state.ip & kEntryMask) >= rule.cfa_words();
  return enter_caller(state, stack, state.sp, has_pushed ? 2 : 1, 0);
}

Step follow_realigned(Rule rule, FrameState& state, const StackView& stack) noexcept {
  const std::uint64_t slot = state.fp - kWordBytes * rule.cfa_words();
  const bool is_of_interpreter = rule.frame_pointer_slot() != 0;
  // Below the stack pointer, it is not pushed yet.
  const auto cfa = is_of_interpreter && slot < state.sp ? std::optional(state.fp + 2 * kWordBytes)
                                                        : stack.read(slot);
  if (!cfa)
    return Step::kNotCaptured;
  const FrameState before = state;
  const Step step = enter_caller(state, stack, *cfa, 0, 0);
  if (step == Step::kDone && is_of_interpreter)
    state.ip = stack.read(before.fp + kWordBytes).value_or(0);
  // A frame pointer that points out of the frame has already been restored: see row_step.cpp.
  if (step == Step::kDone && before.fp >= before.sp && before.fp < *cfa)
    state.fp = stack.read(before.fp).value_or(0);
  return step;
}

Step follow_saved(Rule rule, FrameState& state, const StackView& stack) noexcept {
  constexpr std::uint32_t kSlot = 2;
  const auto saved = stack.read(state.sp + kWordBytes * rule.frame_pointer_slot());
  // A wild value could wrap.
  if (!saved || *saved > stack.end())
    return Step::kNotCaptured;
  return enter_caller(state, stack, *saved, rule.cfa_words(), kSlot);
}

}  // namespace

bool is_supported(const objects::Image& image) noexcept { return image.is_x86_64(); }

Rule rule_of(const CfiRow& row, bool is_signal_frame) noexcept {
  constexpr Rule kGeneral(RuleKind::kGeneral);
  const RegisterRule& return_address = row.registers[kInstructionPointer];
  if (return_address.kind == Kind::kUndefined)
    return Rule(RuleKind::kEnd);
  if (is_signal_frame || return_address.kind != Kind::kOffset || return_address.offset != -kWord ||
      row.registers[kStackPointer].kind != Kind::kSameValue)
    return kGeneral;
  if (!row.cfa.is_expression)
    return offset_rule(row).value_or(kGeneral);
  if (const auto plt = plt_rule(row))
    return *plt;
  return realigned_rule(row).value_or(kGeneral);
}

static_assert(kStubBytesBefore == kMaxStubOffset && kStubBytesFrom == kStubBytes - kMinStubOffset);

std::optional<Rule> rule_of_stub(Bytes code, std::size_t at) noexcept {
  for (const StubPoint& point : kStubs) {
    // Adding one keeps this from being negative for bytes after the instruction (offset -1).
    const std::size_t end = at + 1;
    const auto distance = static_cast<std::size_t>(point.offset + 1);
    if (end < distance || code.size() < end - distance + kStubBytes)
      continue;
    std::uint64_t bytes;
    std::memcpy(&bytes, code.data() + (end - distance), sizeof bytes);
    if ((bytes & point.mask) != point.bytes)
      continue;
    return point.cfa_words == 0
               ? Rule(RuleKind::kEnd)
               : Rule(RuleKind::kStackPointer, point.cfa_words, point.frame_pointer_slot);
  }
  return std::nullopt;
}

Step execute(Rule rule, FrameState& state, const StackView& stack) noexcept {
  switch (rule.kind()) {
    case RuleKind::kStackPointer:
      return enter_caller(state, stack, state.sp, rule.cfa_words(), rule.frame_pointer_slot());
    case RuleKind::kFramePointer:
      return enter_caller(state, stack, state.fp, rule.cfa_words(), rule.frame_pointer_slot());
    case RuleKind::kPlt:
      return follow_plt(rule, state, stack);
    case RuleKind::kRealigned:
      return follow_realigned(rule, state, stack);
    case RuleKind::kSavedStackPointer:
      return follow_saved(rule, state, stack);
    case RuleKind::kEnd:
      return Step::kEndOfStack;
    case RuleKind::kGeneral:
    case RuleKind::kNone:
    case RuleKind::kNotExecutable:
      break;
  }
  return Step::kUnusable;
}

Step step_by_frame_pointer(FrameState& state, const StackView& stack) noexcept {
  constexpr std::uint32_t kSlot = 2;
  if (state.fp % kWordBytes != 0)
    return Step::kUnusable;
  return enter_caller(state, stack, state.fp, kSlot, kSlot);
}

Step step_as_stub(FrameState& state, const StackView& stack) noexcept {
  return enter_caller(state, stack, state.sp, 2, 0);
}

Step step_as_leaf(FrameState& state, const StackView& stack) noexcept {
  return enter_caller(state, stack, state.sp, 1, 0);
}

}  // namespace pe::unwind::x86_64
