// An invented program that calls and returns at random, with a real stack in memory.  It has every
// shape of frame that the unwinder knows: rbp is a frame pointer in some, another value in others.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "support/walks.h"

namespace pe::testing {

class FakeProgram {
 public:
  static constexpr std::size_t kWords = 4096;
  static constexpr std::size_t kMaxDepth = 60;

  explicit FakeProgram(std::uint32_t seed)
      : random_(seed),
        code_({
            code({DW_CFA_undefined, 16}),                             // kRoot
            code({DW_CFA_def_cfa_offset, 24}),                        // kSmall
            code({DW_CFA_def_cfa_offset, 80}),                        // kBig
            code({DW_CFA_def_cfa_offset, 48, DW_CFA_offset | 6, 2}),  // kSavesRbp
            code({DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2}),      // kFramePointer
            code({DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_expression,
                  6, 2, DW_OP_breg6, 0}),                                       // kRealigned
            code({DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 0, DW_OP_deref}),  // kGeneral
        }),
        space_(code_.space()),
        words_(kWords, 0) {
    enter(kRoot);
  }

  /// Calls a function, returns from one, or works in the current one; a few times each.
  void run() {
    for (auto left = below(6) + 1; left > 0; --left) {
      const auto choice = below(8);
      if (choice < 3 && frames_.size() < kMaxDepth)
        enter(static_cast<Shape>(kSmall + below(kShapes - kSmall)));
      else if (choice < 6 && frames_.size() > 1)
        leave();
      else
        work();
    }
  }

  /// The registers that a sample would record.
  [[nodiscard]] unwind::WalkStart registers() const {
    const std::uint64_t ip = address(frames_.back().shape) + 16;
    return {unwind::architecture::Registers(unwind::FrameState{ip, sp_, fp_})};
  }
  /// The stack from the stack pointer on, at most `bytes` bytes.
  [[nodiscard]] unwind::StackView stack(std::uint64_t bytes = kWords * 8) const {
    const auto all = std::as_bytes(std::span(words_));
    const auto from = static_cast<std::size_t>(sp_ - kFakeStack);
    return {sp_, all.subspan(from, std::min<std::size_t>(all.size() - from, bytes))};
  }
  /// The addresses that a walk should find.
  [[nodiscard]] std::vector<std::uint64_t> truth() const {
    std::vector<std::uint64_t> result = {address(frames_.back().shape) + 16};
    for (std::size_t i = frames_.size() - 1; i > 0; --i)
      result.push_back(frames_[i].return_address);
    return result;
  }
  /// The stack pointers of these frames.
  [[nodiscard]] std::vector<std::uint64_t> true_stack_pointers() const {
    std::vector<std::uint64_t> result = {sp_};
    for (std::size_t i = frames_.size() - 1; i > 0; --i)
      result.push_back(frames_[i].cfa);
    return result;
  }
  unwind::AddressSpace& space() { return space_; }
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

 private:
  enum Shape : std::uint64_t {
    kRoot,
    kSmall,
    kBig,
    kSavesRbp,
    kFramePointer,
    kRealigned,
    kGeneral,
    kBare,  // no rules: only a frame pointer, as in the code of a JIT compiler
    kShapes
  };
  struct Frame {
    Shape shape;
    std::uint64_t cfa, caller_fp, return_address;
    bool owns_fp;  ///< the function may put any value into rbp
  };

  static std::uint64_t address(Shape shape) { return kFakeCode + 0x100 * shape; }
  std::uint64_t& word(std::uint64_t avma) { return words_[(avma - kFakeStack) / 8]; }

  void push(std::uint64_t value) {
    sp_ -= 8;
    word(sp_) = value;
  }
  void fill_down_to(std::uint64_t sp) {
    while (sp_ > sp)
      push(random_());
  }

  void enter(Shape shape) {
    const std::uint64_t return_address =
        frames_.empty() ? 0 : address(frames_.back().shape) + 17 + below(64);
    Frame frame{shape, sp_, fp_, return_address, false};
    push(return_address);
    switch (shape) {
      case kRoot:
        break;
      case kSmall:
      case kBig:
        fill_down_to(frame.cfa - (shape == kSmall ? 24 : 80));
        break;
      case kSavesRbp:
        push(fp_);
        frame.owns_fp = true;
        fill_down_to(frame.cfa - 48);
        break;
      case kFramePointer:
      case kBare:
        push(fp_);
        fp_ = sp_;
        fill_down_to(sp_ - 8 * below(8));
        break;
      case kRealigned:
        sp_ &= ~std::uint64_t{63};
        push(return_address);
        push(fp_);
        fp_ = sp_;
        push(frame.cfa);
        fill_down_to(sp_ - 64);
        break;
      case kGeneral:
        fill_down_to(frame.cfa - 32);
        push(frame.cfa);
        break;
      case kShapes:
        break;
    }
    frames_.push_back(frame);
  }

  void leave() {
    sp_ = frames_.back().cfa;
    fp_ = frames_.back().caller_fp;
    frames_.pop_back();
  }

  void work() {
    if (frames_.back().owns_fp)
      fp_ = below(2) == 0 ? random_() : below(3);
  }

  std::mt19937_64 random_;
  FakeCode code_;
  unwind::AddressSpace space_;
  std::vector<std::uint64_t> words_;
  std::vector<Frame> frames_;
  std::uint64_t sp_ = kFakeStack + kWords * 8;
  std::uint64_t fp_ = 0;
};

}  // namespace pe::testing
