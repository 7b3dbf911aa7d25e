// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_walk.h"

#include <algorithm>
#include <array>
#include <span>

#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/own_memory.h"
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

namespace {

using unwind::Rule;
using unwind::RuleKind;
using unwind::Step;

constexpr std::uint64_t kWord = architecture::kWordBytes;
/// Most coroutines have less than the first on their stacks.
constexpr std::size_t kFirstCopiedBytes = std::size_t{4} << 10;
constexpr std::size_t kMostCopiedBytes = std::size_t{1} << 20;
constexpr std::size_t kMostCopies = 2;  ///< of that size in a walk

constexpr auto word_at = [](std::uint64_t avma) noexcept {
  const auto* word =
      reinterpret_cast<const std::uint64_t*>(avma);  // NOLINT(performance-no-int-to-ptr)
  return load_relaxed(*word);
};

/// Whether a step by a rule uses the frame pointer.
bool uses_frame_pointer(Rule rule) noexcept {
  return rule.kind() == RuleKind::kFramePointer || rule.kind() == RuleKind::kNone;
}

}  // namespace

bool StackWalk::start(CodeBook& codes, std::uint32_t max_depth, FindStackEnd find_end) noexcept {
  codes_ = &codes;
  max_depth_ = max_depth;
  find_end_ = find_end;
  generation_ = codes.generation();
  return new_.map(kFirstFrames) &&
         kept_.for_each_array([](auto& array) { return array.map(kFirstFrames); });
}

void StackWalk::stop() noexcept {
  new_.unmap();
  copies_.bytes.unmap();
  kept_.for_each_array([](auto& array) {
    array.unmap();
    return true;
  });
}

/// Returns how many of the kept frames may be joined.
std::size_t StackWalk::joinable() const noexcept {
  if (kept_.size() == 0 || max_depth_ != 0)
    return 0;
  const std::size_t unchanged = kept_.joinable(kept_.size(), word_at, [](std::size_t) {});
  return std::min(kept_.before_barrier(), unchanged);
}

/// Doubles the room; false if there is no memory.
bool StackWalk::grow() noexcept {
  const auto doubled = [](auto& array) {
    auto old = array;
    if (!array.map(old.size() * 2))
      return false;
    std::copy_n(old.data(), old.size(), array.data());
    old.unmap();
    return true;
  };
  return kept_.for_each_array(doubled) && doubled(new_);
}

StackWalk::Next StackWalk::step_without_cfi(Position& at) noexcept {
  if (at.state.fp == 0)
    return Next::kEnd;
  unwind::FrameState caller = at.state;
  if (architecture::step_by_frame_pointer(caller, at.stack) != Step::kDone)
    return Next::kIncomplete;
  at.fp_slot = at.state.fp;
  at.state = caller;
  at.is_exact = false;
  // This is a guess: the lookup of the address shows whether it is code.
  return Next::kGoOn;
}

StackWalk::Next StackWalk::step_generally(Position& at, const KnownCode& code) noexcept {
  architecture::Registers registers(at.state);
  auto [step, is_signal_frame] = codes_->step_by_row(code.key, registers, at.stack);
  if (step == Step::kUnknownRegister && !is_elsewhere_ &&
      find_all_registers(*codes_, at.state, registers))
    step = codes_->step_by_row(code.key, registers, at.stack).step;
  if (!unwind::leads_to_a_frame(step, at.is_exact, is_signal_frame))
    return step == Step::kEndOfStack ? Next::kEnd : Next::kIncomplete;
  at.state = registers.state();
  at.fp_slot = 0;
  at.is_exact = is_signal_frame;
  new_barrier_ = at.count;
  if (step == Step::kOtherStack) {
    is_elsewhere_ = true;
    at.stack = view_of(at.state.sp, find_end_(at.state.sp));
    if (at.stack.end() == at.stack.start())
      return Next::kIncomplete;
  }
  return Next::kGoOn;
}

/// Steps by a rule that is not of the two most common kinds.
StackWalk::Next StackWalk::step_otherwise(Position& at, const KnownCode& code) noexcept {
  switch (code.rule.kind()) {
    case RuleKind::kEnd:
      return Next::kEnd;
    case RuleKind::kGeneral:
      return step_generally(at, code);
    case RuleKind::kNone:
      return step_without_cfi(at);
    case RuleKind::kRealigned:
      new_barrier_ = at.count;
      break;
    case RuleKind::kPlt:
      break;
    default:
      return Next::kIncomplete;
  }
  if (architecture::execute(code.rule, at.state, at.stack) != Step::kDone)
    return Next::kIncomplete;
  at.fp_slot = 0;
  at.is_exact = false;
  return Next::kGoOn;
}

namespace {

/// Returns where enter_caller() has read the frame pointer; 0: nowhere, because a slot that has
/// been popped is not read.
std::uint64_t slot_that_was_read(Rule rule, std::uint64_t sp, std::uint64_t cfa) noexcept {
  const std::uint64_t saved_bytes = rule.frame_pointer_slot() * kWord;
  return saved_bytes - 1 < cfa - sp ? cfa - saved_bytes : 0;
}

}  // namespace

/// Fills new_ while addresses are known and have one of the two most common rules: at least nine of
/// ten walks need nothing else.  `candidate` is one more than the number of the kept frame that may
/// be joined next, below `limit`.  On Pause::kJoins that frame is the joined one.
StackWalk::Pause StackWalk::walk_common(Position& position, std::size_t limit,
                                        std::size_t& candidate) noexcept {
  const CodeTable::Table* known = codes_->known();
  const StackView stack = position.stack;
  const Kept::Place* places = kept_.places();
  const Kept::Details* details = kept_.details();
  std::size_t next = candidate;
  unwind::FrameState state = position.state;
  std::uint64_t fp_slot = position.fp_slot;
  CodeKey key(state.ip, position.is_exact);
  NewFrame* out = new_.data() + position.count;
  const NewFrame* end = new_.data() + room_for_new();
  Pause pause = Pause::kIsFull;
  while (true) {
    next = Kept::find_above(places, state.sp, next);
    if (next != 0 && next <= limit &&
        Kept::is_same(places[next - 1], details[next - 1], state.sp, key, state.fp)) {
      *out = {key, state.sp, state.fp, fp_slot, Rule(), 0};
      pause = Pause::kJoins;
      break;
    }
    const KnownCode* code = CodeTable::find_in(known, key);
    if (code == nullptr || code->number == 0 || out == end) [[unlikely]] {
      constexpr std::array kPauses = {Pause::kIsUnknown, Pause::kIsFull};
      pause = state.ip == 0 ? Pause::kIsEnd : kPauses[static_cast<std::size_t>(out == end)];
      break;
    }
    const Rule rule = code->rule;
    *out++ = {key, state.sp, state.fp, fp_slot, rule, code->number};
    if (rule.kind() > RuleKind::kFramePointer) [[unlikely]] {
      pause = Pause::kIsOther;
      break;
    }
    const std::uint64_t sp = state.sp;
    const std::uint64_t base = rule.kind() == RuleKind::kStackPointer ? sp : state.fp;
    if (architecture::enter_caller(state, stack, base, rule.cfa_words(),
                                   rule.frame_pointer_slot()) != Step::kDone) [[unlikely]] {
      pause = Pause::kFails;
      break;
    }
    fp_slot = slot_that_was_read(rule, sp, state.sp);
    key = CodeKey(state.ip, false);
  }
  candidate = next;
  position.state = state;
  position.fp_slot = fp_slot;
  position.is_exact = key.is_exact();
  position.count = static_cast<std::size_t>(out - new_.data());
  return pause;
}

/// Returns the room in new_, so that one joined frame fits as well, and all kept frames fit into
/// the other arrays.
std::size_t StackWalk::room_for_new() const noexcept {
  const std::size_t room = new_.size() - kept_.size() - 1;
  return max_depth_ != 0 && max_depth_ < room ? max_depth_ : room;
}

/// Handles the cases that walk_common() does not.
StackWalk::Next StackWalk::go_on(Position& at, Pause pause) noexcept {
  const bool is_deepest = at.count == max_depth_ && max_depth_ != 0;
  switch (pause) {
    case Pause::kIsEnd:
      new_zero_slot_ = at.state.sp - kWord;
      return Next::kEnd;
    case Pause::kIsUnknown: {
      const auto code = codes_->look_up(CodeKey(at.state.ip, at.is_exact));
      return code && code->number != 0 ? Next::kGoOn : Next::kIncomplete;
    }
    case Pause::kIsOther: {
      const NewFrame& frame = new_[at.count - 1];
      if (is_deepest && frame.rule.kind() != RuleKind::kEnd)
        return Next::kNoRoom;
      return step_otherwise(at, {frame.key, frame.rule, frame.code});
    }
    case Pause::kIsFull:
      return !is_deepest && grow() ? Next::kGoOn : Next::kNoRoom;
    case Pause::kFails:
    case Pause::kJoins:
      break;
  }
  return Next::kIncomplete;
}

/// Fills new_.  Returns the number of the kept frame that the walk joins, which is the last one of
/// new_; Kept::kNone if the walk has ended.
std::size_t StackWalk::walk_to_join(Position& at, std::size_t limit) noexcept {
  std::size_t candidate = kept_.size();
  Next next = Next::kGoOn;
  while (next == Next::kGoOn) {
    const Pause pause = walk_common(at, is_elsewhere_ ? 0 : limit, candidate);
    if (pause == Pause::kJoins)
      return candidate - 1;
    next = go_on(at, pause);
  }
  is_incomplete_ = next == Next::kIncomplete;
  is_cut_ = next == Next::kNoRoom;
  return Kept::kNone;
}

/// Puts the new frames inside of the joined one, or replaces all.
void StackWalk::keep(std::size_t joined, const Position& at) noexcept {
  const NewFrame* from = new_.data();
  StackHash hash;
  if (joined != Kept::kNone)
    hash = kept_.details()[joined].extra.hash;
  kept_.keep(
      {joined, at.count, new_barrier_, new_zero_slot_},
      [from](std::size_t i) {
        const NewFrame& frame = from[i];
        return Kept::NewFrame{frame.sp, frame.key, frame.fp, frame.fp_slot,
                              uses_frame_pointer(frame.rule)};
      },
      [from, hash](std::size_t i) mutable {
        hash = hash.with(from[i].code);
        return Storage::Extra{hash, from[i].code};
      });
}

WalkedStack StackWalk::walk(const unwind::FrameState& caller, StackEnd end) noexcept {
  if (end.avma != stack_end_ || generation_ != codes_->generation()) [[unlikely]] {
    kept_.forget();
    stack_end_ = end.avma;
    generation_ = codes_->generation();
  }
  kept_.forget_below(caller.sp);
  const std::size_t kept = kept_.size();
  is_incomplete_ = is_cut_ = false;
  ++counts_.walks;
  const std::size_t limit = joinable();
  if (limit == kept && kept != 0) {
    const Kept::Details& details = kept_.details()[kept - 1];
    if (Kept::is_same(kept_.places()[kept - 1], details, caller.sp, CodeKey(caller.ip, false),
                      caller.fp)) {  // nothing new
      counts_.reused += kept;
      return {details.extra.hash, static_cast<std::uint32_t>(kept)};
    }
  }
  return walk_anew(caller, end, limit);
}

/// Returns the bytes of a stack: those of the thread's own in place, those of another one as a
/// copy.
StackView StackWalk::view_of(std::uint64_t sp, StackEnd end) noexcept {
  if (!end.is_foreign) {
    const auto* first =
        reinterpret_cast<const std::byte*>(sp);  // NOLINT(performance-no-int-to-ptr)
    return {sp, Bytes(first, end.avma > sp ? end.avma - sp : 0)};
  }
  if (copies_.bytes.size() < kMostCopies * kMostCopiedBytes &&
      !copies_.bytes.map(kMostCopies * kMostCopiedBytes))
    return {sp, Bytes()};
  const std::size_t most = std::min(copies_.each, copies_.bytes.size() - copies_.used);
  std::byte* const copy = copies_.bytes.data() + copies_.used;
  const inprocess::KeepErrno keep;
  // The first try touches nothing that the program has not touched.
  const bool is_first_try = copies_.each == kFirstCopiedBytes;
  const std::uint64_t bytes = is_first_try ? inprocess::resident_bytes(sp, most) : most;
  const auto copied = static_cast<std::size_t>(
      std::max(inprocess::copy_own_memory(sp, {std::span(copy, bytes), {}}), std::int64_t{0}));
  copies_.used += copied;
  copies_.is_short = copies_.is_short || copied == bytes;
  return {sp, Bytes(copy, copied)};
}

/// Walks as walk_to_join() does.  Repeats that with larger copies as long as the walk ends early.
std::size_t StackWalk::walk_copied(Position& at, std::size_t limit, StackEnd end) noexcept {
  constexpr std::size_t kLarger = 16;
  const Position start = at;
  for (copies_.each = kFirstCopiedBytes;; copies_.each *= kLarger) {
    at = start;
    copies_.used = 0;
    copies_.is_short = is_elsewhere_ = false;
    new_barrier_ = 0;
    new_zero_slot_ = 0;
    at.stack = view_of(at.state.sp, end);
    const std::size_t joined = walk_to_join(at, limit);
    if (!is_incomplete_ || !copies_.is_short || copies_.each >= kMostCopiedBytes)
      return joined;
  }
}

/// The general case: there are new frames.
WalkedStack StackWalk::walk_anew(const unwind::FrameState& caller, StackEnd end,
                                 std::size_t limit) noexcept {
  Position at{caller, {caller.sp, Bytes()}, 0, false, 0};
  const std::size_t joined = walk_copied(at, limit, end);
  counts_.walked += at.count;
  counts_.reused += joined == Kept::kNone ? 0 : joined + 1;
  keep(joined, at);
  if (kept_.size() == 0)
    return {{}, 0};
  if (is_cut_ || is_incomplete_ || is_elsewhere_ || end.is_foreign) [[unlikely]]
    stack_end_ = kNoStack;
  return {kept_.details()[kept_.size() - 1].extra.hash, static_cast<std::uint32_t>(kept_.size())};
}

}  // namespace pe::malloctrace
