// What unwinding must know about x86-64: registers, which rows fit a Rule, how to follow one.
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
#include "unwind/walk/stack_view.h"
#include "unwind/walk/step.h"

namespace pe::objects {
class Image;
}

namespace pe::unwind {
struct CfiRow;
}

namespace pe::unwind::x86_64 {

/// DWARF register numbers.  Vector registers come after these and never matter.
inline constexpr unsigned kRbx = 3, kFramePointer = 6, kStackPointer = 7, kR10 = 10, kR12 = 12,
                          kR15 = 15, kInstructionPointer = 16;
inline constexpr std::size_t kRegisterCount = 17;
inline constexpr std::uint64_t kWordBytes = 8;

/// General registers by DWARF number.
class Registers {
 public:
  Registers() noexcept {}  // NOLINT(modernize-use-equals-default): that would write zeros
  /// Only the three that most rules need.
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
  /// The three; 0 for what is not known.
  [[nodiscard]] FrameState state() const noexcept {
    const auto value = [this](unsigned number) {
      return (known_ >> number & 1U) != 0 ? values_[number] : 0;
    };
    return {value(kInstructionPointer), value(kStackPointer), value(kFramePointer)};
  }

 private:
  std::uint32_t known_ = 0;
  std::array<std::uint64_t, kRegisterCount> values_;  ///< of those only: 0 would have to be written
};

/// Whether images of this architecture are `image`'s.
bool is_supported(const objects::Image& image) noexcept;

/// The rule that says the same as a row; kGeneral where none does.  `is_signal_frame` is its
/// CIE's: such rows are always kGeneral, because the caller's instruction is exact.
Rule rule_of(const CfiRow& row, bool is_signal_frame) noexcept;

/// The rule of a stub that is known by its bytes (x86_64_stubs.h), for the instruction at `at` in
/// `code`; nullopt if it is none.
std::optional<Rule> rule_of_stub(Bytes code, std::size_t at) noexcept;
/// How many bytes before and from the instruction on rule_of_stub() can use.
inline constexpr std::size_t kStubBytesBefore = 10, kStubBytesFrom = 9;

/// "cfa=rsp+16 rbp=cfa-16", "plt 11", "end" ...
std::string to_string(Rule rule);

/// Whether a caller's frame can begin at `cfa`: above `sp` by a return address at least, and not
/// above what was copied.
inline Step check_cfa(std::uint64_t cfa, std::uint64_t sp, const StackView& stack) noexcept {
  if (cfa < kWordBytes || cfa - kWordBytes < sp) [[unlikely]]
    return Step::kNoProgress;
  return cfa > stack.end() ? Step::kNotCaptured : Step::kDone;
}

/// Steps to the caller whose frame begins `cfa_words` above `base`: return address right below
/// that, frame pointer `frame_pointer_slot` words below, if any.  Needs `state.sp >=
/// stack.start()`, and keeps it.
///
/// A slot below the stack pointer has been popped already, in an epilogue: the register is right.
inline Step enter_caller(FrameState& state, const StackView& stack, std::uint64_t base,
                         std::uint64_t cfa_words, std::uint32_t frame_pointer_slot) noexcept {
  // Makes the compiler compute the CFA apart from the return address's place.  That is one
  // addressing mode then, instead of three instructions that the next frame waits for: 14 % of a
  // walk.
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

/// Follows `rule` from `state` to the caller; on anything but kDone the state is as it was.
/// kGeneral, kNone and kNotExecutable are kUnusable: those need more than a rule.
/// Needs `state.sp >= stack.start()`, and keeps it.
Step execute(Rule rule, FrameState& state, const StackView& stack) noexcept;

/// Steps by the frame pointer, where no table describes the code (JIT compilers, assembly): it
/// points at the caller's, and the return address stands above.  A guess: code without frame
/// pointers has anything in the register, so the caller checks the address that it gets.
Step step_by_frame_pointer(FrameState& state, const StackView& stack) noexcept;

/// Steps out of a frame as a stub that calls a function leaves it: a word, then the return address.
/// A guess, for where the code itself cannot be read.
Step step_as_stub(FrameState& state, const StackView& stack) noexcept;

/// Steps out of a function that has pushed nothing.  A guess as well: true at a function's first
/// instruction, in small assembly functions, and after a call to an address that is no code.
Step step_as_leaf(FrameState& state, const StackView& stack) noexcept;

}  // namespace pe::unwind::x86_64
