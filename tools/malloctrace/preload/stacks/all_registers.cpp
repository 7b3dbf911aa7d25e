// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/all_registers.h"

#include <array>

#include "unwind/walk/row_step.h"

namespace pe::malloctrace {
namespace {

using unwind::StackView;
using unwind::architecture::Registers;
namespace architecture = unwind::architecture;

/// Returns the registers of the function that this is inlined into.
[[gnu::always_inline]] inline Registers registers_here() noexcept {
  constexpr std::array<unsigned, 8> kNumbers = {architecture::kInstructionPointer,
                                                architecture::kStackPointer,
                                                architecture::kFramePointer,
                                                architecture::kRbx,
                                                12,
                                                13,
                                                14,
                                                15};
  std::array<std::uint64_t, kNumbers.size()> values;
  asm volatile(
      "leaq 0f(%%rip), %%rax\n\t"
      "movq %%rax, (%0)\n\t"
      "movq %%rsp, 8(%0)\n\t"
      "movq %%rbp, 16(%0)\n\t"
      "movq %%rbx, 24(%0)\n\t"
      "movq %%r12, 32(%0)\n\t"
      "movq %%r13, 40(%0)\n\t"
      "movq %%r14, 48(%0)\n\t"
      "movq %%r15, 56(%0)\n"
      "0:"
      :
      : "r"(values.data())
      : "rax", "memory");
  Registers registers;
  for (std::size_t i = 0; i < kNumbers.size(); ++i)
    registers.set(kNumbers[i], values[i]);
  return registers;
}

}  // namespace

bool find_all_registers(CodeBook& codes, const unwind::FrameState& frame,
                        Registers& into) noexcept {
  Registers registers = registers_here();
  bool is_exact = true;
  for (unwind::FrameState at = registers.state(); at.sp < frame.sp; at = registers.state()) {
    const auto* first =
        reinterpret_cast<const std::byte*>(at.sp);  // NOLINT(performance-no-int-to-ptr)
    const StackView stack(at.sp, Bytes(first, frame.sp - at.sp));
    const auto [step, is_signal_frame] =
        codes.step_by_row(CodeKey(at.ip, is_exact), registers, stack);
    if (step == unwind::Step::kOtherStack ||
        !unwind::leads_to_a_frame(step, is_exact, is_signal_frame))
      return false;
    is_exact = is_signal_frame;
  }
  const bool is_met = registers.state() == frame;
  if (is_met)
    into = registers;
  return is_met;
}

}  // namespace pe::malloctrace
