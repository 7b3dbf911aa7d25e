// SPDX-License-Identifier: MIT
#include "unwind/walk/row_step.h"

#include "unwind/cfi/expression.h"

namespace pe::unwind {
namespace {

using architecture::Registers;
using Kind = RegisterRule::Kind;
using Found = std::variant<std::uint64_t, Step>;

Found cfa_of(const CfaRule& rule, const Registers& registers, const StackView& stack) {
  if (rule.is_expression)
    return evaluate(rule.expression, {registers, stack, std::nullopt});
  if (const auto base = registers.get(rule.register_number))
    return *base + static_cast<std::uint64_t>(rule.offset);
  return Step::kUnknownRegister;
}

Found word_at(std::uint64_t avma, const StackView& stack) {
  const auto word = stack.read(avma);
  return word ? Found(*word) : Found(Step::kNotCaptured);
}

Found register_value(const Registers& registers, std::uint64_t number) {
  const auto value = registers.get(number);
  return value ? Found(*value) : Found(Step::kUnknownRegister);
}

/// The caller's value of register `number`.
Found caller_value(const CfiRow& row, unsigned number, std::uint64_t cfa,
                   const Registers& registers, const StackView& stack) {
  const RegisterRule& rule = row.registers[number];
  switch (rule.kind) {
    case Kind::kSameValue:
      // This is the definition of the CFA; no compiler writes a rule for it.
      return number == architecture::kStackPointer ? Found(cfa) : register_value(registers, number);
    case Kind::kUndefined:
      // As in rules: for the frame pointer, the register is as good as any other value.
      return number == architecture::kFramePointer ? register_value(registers, number)
                                                   : Step::kUnknownRegister;
    case Kind::kOffset: {
      // A place below the stack pointer was already popped, in an epilogue.
      const auto distance = static_cast<std::uint64_t>(rule.offset);
      const bool is_popped = rule.offset < 0 && -distance > cfa - registers.state().sp;
      return is_popped ? register_value(registers, number) : word_at(cfa + distance, stack);
    }
    case Kind::kValueOffset:
      return cfa + static_cast<std::uint64_t>(rule.offset);
    case Kind::kRegister:
      return register_value(registers, static_cast<std::uint64_t>(rule.offset));
    case Kind::kValue:
      return evaluate(rule.expression, {registers, stack, cfa});
    case Kind::kExpression:
      break;
  }
  const Found place = evaluate(rule.expression, {registers, stack, cfa});
  const auto* avma = std::get_if<std::uint64_t>(&place);
  if (avma == nullptr)
    return place;
  // gcc describes rbp of a realigned frame as "at *rbp" even after it has popped rbp.  A function
  // saves registers in its own frame, so a place elsewhere means that the register was popped.
  // Only a signal's frame is elsewhere, and it also has a place for the stack pointer.
  const bool is_in_frame = *avma >= registers.state().sp && *avma < cfa;
  const bool is_ordinary = row.registers[architecture::kStackPointer].kind == Kind::kSameValue;
  if (is_ordinary && !is_in_frame && number != architecture::kInstructionPointer)
    return register_value(registers, number);
  return word_at(*avma, stack);
}

}  // namespace

Step step_row(const CfiRow& row, Registers& registers, const StackView& stack) {
  if (row.registers[architecture::kInstructionPointer].kind == Kind::kUndefined)
    return Step::kEndOfStack;
  const Found cfa = cfa_of(row.cfa, registers, stack);
  if (const auto* failure = std::get_if<Step>(&cfa))
    return *failure;
  const auto frame_start = std::get<std::uint64_t>(cfa);
  const std::uint64_t sp = registers.state().sp;
  // If the stack pointer has its own place (a signal's frame), the value at that place is checked.
  const bool may_switch = row.registers[architecture::kStackPointer].kind != Kind::kSameValue;
  const bool is_on_stack = row.registers[architecture::kInstructionPointer].kind != Kind::kRegister;
  if (!may_switch && is_on_stack)
    if (const Step step = architecture::check_cfa(frame_start, sp, stack); step != Step::kDone)
      return step;
  Registers caller;
  for (unsigned number = 0; number < architecture::kRegisterCount; ++number) {
    const Found value = caller_value(row, number, frame_start, registers, stack);
    const bool is_needed =
        number == architecture::kInstructionPointer || number == architecture::kStackPointer;
    if (const auto* known = std::get_if<std::uint64_t>(&value))
      caller.set(number, *known);
    else if (is_needed)
      return std::get<Step>(value);
  }
  const std::uint64_t caller_sp = caller.state().sp;
  // The interrupted frame may be on either side of an alternate stack.
  if (may_switch && (caller_sp < stack.start() || caller_sp > stack.end())) {
    registers = caller;
    return Step::kOtherStack;
  }
  const bool stands_still = caller_sp == sp && !may_switch && !is_on_stack;
  if (caller_sp <= sp && !stands_still)
    return Step::kNoProgress;
  if (caller_sp > stack.end())
    return Step::kNotCaptured;
  registers = caller;
  return stands_still ? Step::kStandsStill : Step::kDone;
}

}  // namespace pe::unwind
