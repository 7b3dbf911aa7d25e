// Executes any bytes as a function's CFI program.  Rows are in order and within the function, and a
// rule gives the same caller as its row.
//
// Input: five bytes (flags, alignment of code, ip, stack pointer, frame pointer), the program.
// SPDX-License-Identifier: MIT
#include <array>
#include <cstdlib>
#include <string>

#include "support/cfi_builder.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/walk/row_step.h"

namespace {

using namespace pe::unwind;
using architecture::Registers;

constexpr std::uint64_t kStack = 0x7000;
constexpr std::size_t kStackWords = 64;

void check(bool holds) {
  if (!holds)
    std::abort();
}

/// Words that are numbers, or addresses in the stack.
std::array<std::uint64_t, kStackWords> make_stack() {
  std::array<std::uint64_t, kStackWords> words{};
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = i % 3 == 0 ? kStack + 8 * (i * 7 % kStackWords) : i;
  return words;
}

void check_step(const CfiRow& row, bool is_signal, const FrameState& start,
                const StackView& stack) {
  const Rule rule = architecture::rule_of(row, is_signal);
  Registers registers(start);
  const Step by_row = step_row(row, registers, stack);
  if (by_row == Step::kDone)
    check(registers.state().sp > start.sp && registers.state().sp <= stack.end());
  else if (by_row == Step::kOtherStack)
    check(registers.state().sp < stack.start() || registers.state().sp > stack.end());
  else if (by_row == Step::kStandsStill)
    check(registers.state().sp == start.sp);
  else
    check(registers.state() == start);
  FrameState state = start;
  const Step by_rule = architecture::execute(rule, state, stack);
  if (rule.kind() == RuleKind::kGeneral)
    return check(by_rule == Step::kUnusable);
  check(by_rule == by_row && state == registers.state());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kFixed = 5;
  if (size < kFixed)
    return 0;
  const bool is_signal = (data[0] & 1) != 0;
  pe::testing::CfiBuilder builder(0x20000);
  builder.cie({.augmentation = is_signal ? "zRS" : "zR", .code_alignment = data[1] & 0x7f});
  builder.fde(0x1000, 200,
              std::string_view(reinterpret_cast<const char*>(data) + kFixed, size - kFixed));
  const CfiSection section(CfiFormat::kEhFrame, builder.section());
  const auto fde = section.fde_count() == 1 ? section.fde(0) : std::nullopt;
  if (!fde)
    return 0;
  const auto words = make_stack();
  const StackView stack(kStack, std::as_bytes(std::span(words)));
  const FrameState start{0x1000U + data[2], kStack + data[3] * 2 % (8 * kStackWords),
                         (data[0] & 2) != 0 ? data[4] : kStack + data[4] * 3};
  CfiProgram program(*fde);
  std::uint64_t end = 0;
  while (program.next()) {
    check(program.from() >= end && program.from() < program.to() && program.to() <= fde->bytes);
    end = program.to();
    check_step(program.row(), is_signal, start, stack);
  }
  check(program.is_damaged() || end == fde->bytes);
  return 0;
}
