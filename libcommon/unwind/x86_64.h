// The x86-64 part of unwinding: the registers, the rows that fit a Rule, and how to follow a rule.
//
// Sources: System V ABI AMD64 Architecture Processor Supplement 1.0, 3.2.2 "The Stack Frame" and
// figure 3.36 "DWARF Register Number Mapping".
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/byte_reader.h"
#include "unwind/rule.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"
#include "unwind/x86_64_calls.h"

namespace pe::objects {
class Image;
}

namespace pe::unwind {
struct CfiRow;
}

namespace pe::unwind::x86_64 {

/// DWARF register numbers.  Vector registers have higher numbers, and unwinding never needs them.
inline constexpr unsigned kRbx = 3, kFramePointer = 6, kStackPointer = 7, kR10 = 10, kR12 = 12,
                          kR15 = 15, kInstructionPointer = 16;
inline constexpr std::size_t kRegisterCount = 17;
inline constexpr std::uint64_t kWordBytes = 8;

/// The values of the general registers, by DWARF number.
class Registers {
 public:
  Registers() noexcept {}  // NOLINT(modernize-use-equals-default): that would write zeros
  /// Knows only the three registers that most rules need.
  explicit Registers(const FrameState& state) noexcept {
    set(kInstructionPointer, state.ip);
    set(kStackPointer, state.sp);
    set(kFramePointer, state.fp);
  }

  void set(unsigned number, std::uint64_t value) noexcept {
    values_[number] = value;
    known_ |= 1U << number;
  }
  void forget(unsigned number) noexcept { known_ &= ~(1U << number); }
  [[nodiscard]] std::optional<std::uint64_t> get(std::uint64_t number) const noexcept {
    const bool is_known = number < kRegisterCount && (known_ >> number & 1U) != 0;
    return is_known ? std::optional(values_[number]) : std::nullopt;
  }
  /// Returns these three registers; 0 for an unknown one.
  [[nodiscard]] FrameState state() const noexcept {
    const auto value = [this](unsigned number) {
      return (known_ >> number & 1U) != 0 ? values_[number] : 0;
    };
    return {value(kInstructionPointer), value(kStackPointer), value(kFramePointer)};
  }

 private:
  std::uint32_t known_ = 0;
  std::array<std::uint64_t, kRegisterCount> values_;  ///< set for known registers only: faster
};

/// Whether `image` is of this architecture.
bool is_supported(const objects::Image& image) noexcept;

/// Returns the rule that is equivalent to a row; kGeneral if there is none.  `is_signal_frame`
/// comes from the row's CIE.  Such rows are always kGeneral, because the caller's address is exact.
Rule rule_of(const CfiRow& row, bool is_signal_frame) noexcept;

/// Returns the rule of a stub that is identified by its bytes (x86_64_stubs.h), for the instruction
/// at `at` in `code`; nullopt if there is none.
std::optional<Rule> rule_of_stub(Bytes code, std::size_t at) noexcept;
/// The number of bytes before the instruction, and from it on, that rule_of_stub() can use.
inline constexpr std::size_t kStubBytesBefore = 10, kStubBytesFrom = 9;

/// Whether a caller's frame can start at `cfa`.  It must be above `sp` by at least a return
/// address, and not above the copied stack.
inline Step check_cfa(std::uint64_t cfa, std::uint64_t sp, const StackView& stack) noexcept {
  if (cfa < kWordBytes || cfa - kWordBytes < sp) [[unlikely]]
    return Step::kNoProgress;
  return cfa > stack.end() ? Step::kNotCaptured : Step::kDone;
}

/// Steps to the caller whose frame starts `cfa_words` above `base`.  The return address is right
/// below the CFA.  The caller's frame pointer is `frame_pointer_slot` words below the CFA, unless
/// that is 0.  Needs `state.sp >= stack.start()`, and preserves it.
///
/// A slot below the stack pointer was already popped, in an epilogue: the register is right.
inline Step enter_caller(FrameState& state, const StackView& stack, std::uint64_t base,
                         std::uint64_t cfa_words, std::uint32_t frame_pointer_slot) noexcept {
  // The asm makes the compiler compute the CFA separately from the return address's place.  That
  // place is then one addressing mode.  Otherwise the next frame would wait for three instructions:
  // 14 % of a walk.
  std::uint64_t words = cfa_words;
  asm("" : "+r"(words));
  const std::uint64_t cfa = base + words * kWordBytes;
  if (const Step step = check_cfa(cfa, state.sp, stack); step != Step::kDone) [[unlikely]]
    return step;
  state.ip = stack.word(base + cfa_words * kWordBytes - kWordBytes);
  const std::uint64_t saved_bytes = std::uint64_t{frame_pointer_slot} * kWordBytes;
  if (saved_bytes - 1 < cfa - state.sp)  // also false for 0
    state.fp = stack.word(cfa - saved_bytes);
  state.sp = cfa;
  return Step::kDone;
}

/// Follows `rule` from `state` to the caller.  On any result but kDone, `state` is unchanged.
/// kGeneral, kNone and kNotExecutable give kUnusable: they need more than a rule.  Needs `state.sp
/// >= stack.start()`, and preserves it.
Step execute(Rule rule, FrameState& state, const StackView& stack) noexcept;

/// Steps by the frame pointer, where no table describes the code (JIT compilers, assembly).  The
/// register points at the caller's saved frame pointer, and the return address is above that.  This
/// is a guess: other code uses the register for anything.  So the caller must check the resulting
/// address.
Step step_by_frame_pointer(FrameState& state, const StackView& stack) noexcept;

/// Steps out of a frame like that of a stub that calls a function: a word, then the return address.
/// This is a guess, for code that cannot be read.
Step step_as_stub(FrameState& state, const StackView& stack) noexcept;

/// Steps out of a function that has pushed nothing.  This is also a guess.  It is right at a
/// function's first instruction, in small assembly functions, and after a call to an address
/// without code.
Step step_as_leaf(FrameState& state, const StackView& stack) noexcept;

}  // namespace pe::unwind::x86_64
