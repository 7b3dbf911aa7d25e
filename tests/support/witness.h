// Compares our walks of the calling thread's stack with each other and with backtrace(3), which
// uses libgcc's unwinder.  It can also do so after every single instruction.
// SPDX-License-Identifier: MIT
#pragma once

#include <execinfo.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "support/own_stack.h"

namespace pe::testing {

/// Walks the calling thread's stack in several ways and compares the results.
class Witness {
 public:
  static constexpr std::size_t kMaxFrames = 2048;

  Witness() : walker_(cache_), end_(own_stack_end()) {
    copy_.reserve(std::size_t{1} << 17);
    ::backtrace(theirs_.data(), 1);  // loads libgcc
  }

  /// Walks from `context` on; `theirs_` must hold a backtrace that includes the address in
  /// `context`.
  void compare(const ucontext_t& context, bool is_here) {
    const auto registers = registers_of(context);
    const unwind::StackView stack = copy_of_stack(registers.state().sp, end_, copy_);
    const unwind::WalkStart start{registers};
    const unwind::WalkResult walk = walker_.walk(own_.space(), start, stack, ours_);
    const unwind::WalkResult again = walker_.walk(own_.space(), start, stack, reused_, history_);
    const unwind::WalkResult slow =
        unwind::walk_with_all_registers(own_.space(), start, stack, slow_);
    // Both walks start in compare_here(), but at different calls, so their first addresses differ.
    // A sanitizer's frames may come before them.
    if (is_here && their_count_ >= walk.frames)
      theirs_[their_count_ - walk.frames] =
          reinterpret_cast<void*>(context.uc_mcontext.gregs[REG_RIP]);
    ++compared_;
    same_ = same_ && is_same(walk, ours_, again, reused_) && is_same(walk, ours_, slow, slow_) &&
            is_as_theirs(walk) && walk.stop == unwind::Stop::kEndOfStack;
    if (!same_ && first_difference_ == 0)
      first_difference_ = registers.state().ip;
    deepest_ = std::max(deepest_, walk.frames);
  }

  /// Compares from this function on; false if any comparison so far found a difference.
  __attribute__((noinline)) bool compare_here() {
    ucontext_t context;
    ::getcontext(&context);
    their_count_ = static_cast<std::size_t>(::backtrace(theirs_.data(), kMaxFrames));
    compare(context, true);
    return same_;
  }

  /// Compares from the place that a signal interrupted; a signal handler calls this.
  void compare_interrupted(const ucontext_t& context) {
    their_count_ = static_cast<std::size_t>(::backtrace(theirs_.data(), kMaxFrames));
    compare(context, false);
  }

  void ends_realigned(bool does) { ends_realigned_ = does; }
  [[nodiscard]] bool all_same() const { return same_; }
  [[nodiscard]] std::uint64_t first_difference() const { return first_difference_; }
  [[nodiscard]] std::size_t compared() const { return compared_; }
  [[nodiscard]] std::size_t deepest() const { return deepest_; }
  [[nodiscard]] const unwind::Walker& walker() const { return walker_; }

 private:
  using Frames = std::array<unwind::Frame, kMaxFrames>;

  static bool is_same(const unwind::WalkResult& a, const Frames& a_frames,
                      const unwind::WalkResult& b, const Frames& b_frames) {
    return a.stop == b.stop && a.frames == b.frames &&
           std::equal(a_frames.begin(), a_frames.begin() + static_cast<std::ptrdiff_t>(a.frames),
                      b_frames.begin());
  }

  /// Compares from the interrupted address on; the handler's own frames precede it in `theirs_`.
  bool is_as_theirs(const unwind::WalkResult& walk) const {
    std::size_t first = 0;
    while (first < their_count_ &&
           reinterpret_cast<std::uint64_t>(theirs_[first]) != ours_[0].address())
      ++first;
    const std::size_t their_frames = their_count_ - first;
    // At the end of a realigned function, gcc's CFI still says that rbp is on the stack.  libgcc
    // follows it and loses the stack after the caller; our unwinder does not (row_step.cpp).
    const std::size_t certain = ends_realigned_ ? 2 : walk.frames;
    if (their_frames < certain || (!ends_realigned_ && their_frames != walk.frames))
      return false;
    for (std::size_t i = 0; i < certain; ++i)
      if (reinterpret_cast<std::uint64_t>(theirs_[first + i]) != ours_[i].address())
        return false;
    return true;
  }

  OwnSpace own_;
  unwind::RuleCache cache_;
  unwind::Walker walker_;
  unwind::ThreadHistory history_;
  std::uint64_t end_;
  Frames ours_{}, reused_{}, slow_{};
  std::array<void*, kMaxFrames> theirs_{};
  std::size_t their_count_ = 0;
  std::vector<std::uint64_t> copy_;
  bool same_ = true;
  bool ends_realigned_ = false;
  std::uint64_t first_difference_ = 0;
  std::size_t compared_ = 0, deepest_ = 0;
};

using OnStep = std::function<void(const ucontext_t&)>;
/// global: a signal handler has no other access; null: stop stepping
inline const OnStep* on_step;

/// Runs `run` one instruction at a time; a handler of SIGTRAP calls `after_each`.
inline void single_step(const OnStep& after_each, const std::function<void()>& run) {
  constexpr greg_t kTrapFlag = 0x100;
  on_step = &after_each;
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_sigaction = [](int /*signal*/, siginfo_t* /*info*/, void* memory) {
    auto* const context = static_cast<ucontext_t*>(memory);
    if (on_step != nullptr)
      (*on_step)(*context);
    else
      context->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  };
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGTRAP, &action, &before);
  asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  run();
  // A second popfq would not do: between pushfq and popfq our CFI does not know where the stack is.
  on_step = nullptr;
  asm volatile("nop" ::: "memory");
  ::sigaction(SIGTRAP, &before, nullptr);
}

}  // namespace pe::testing
