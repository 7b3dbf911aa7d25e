// SPDX-License-Identifier: MIT
#include "unwind/walk/general_walk.h"

#include "unwind/walk/effort.h"
#include "unwind/walk/fallback.h"
#include "unwind/walk/row_step.h"

namespace pe::unwind {
namespace {

using architecture::Registers;

class GeneralWalk {
 public:
  GeneralWalk(AddressSpace& space, const WalkStart& start, const StackView& stack)
      : space_(space), stack_(stack), registers_(start.registers), is_exact_(!start.is_caller) {}

  /// Goes to the caller, or returns why it cannot.
  std::optional<Stop> step() {
    const std::uint64_t avma = state().ip - (is_exact_ ? 0 : 1);
    const Rule rule = space_.rule(avma);
    if (rule.kind() == RuleKind::kNone || rule.kind() == RuleKind::kNotExecutable)
      return step_blindly(rule.kind());
    const auto place = space_.place(avma);
    const auto full = place ? place->table->full_row(place->svma) : std::nullopt;
    if (!full && rule.kind() != RuleKind::kGeneral)
      return step_by_stub(rule);
    if (!full || !effort_.spend(*full))
      return Stop::kNoUnwindInfo;
    source_ = FrameSource::kCfi;
    Step step = step_row(full->row, registers_, stack_);
    if (step == Step::kNotCaptured)
      if (const auto guessed = step_by_copy_of_cfa(space_, full->row, registers_, stack_)) {
        step = *guessed;
        source_ = FrameSource::kLeaf;
      }
    if (needs_another_stack(step, full->row))
      registers_.set(architecture::kStackPointer, 0);  // the place of that stack is unknown
    if (!leads_to_a_frame(step, is_exact_, full->is_signal_frame))
      return stop_of(step);
    is_elsewhere_ = step == Step::kOtherStack;
    if (!registers_.get(architecture::kFramePointer))
      registers_.set(architecture::kFramePointer, 0);
    is_exact_ = full->is_signal_frame;
    return std::nullopt;
  }

  [[nodiscard]] FrameState state() const { return registers_.state(); }
  /// Whether this can be a frame.  An exact address is one wherever it is.
  [[nodiscard]] bool is_frame() const {
    return state().ip <= Frame::kMaxAddress &&
           (is_exact_ || space_.find(state().ip - 1) != nullptr);
  }
  /// Whether the frame's stack was not copied.
  [[nodiscard]] bool is_elsewhere() const { return is_elsewhere_; }
  [[nodiscard]] Frame frame() const { return {state().ip, source_, is_exact_}; }

 private:
  /// A stub preserves the registers that functions preserve.
  std::optional<Stop> step_by_stub(Rule rule) {
    FrameState state = registers_.state();
    if (const Step step = architecture::execute(rule, state, stack_); step != Step::kDone)
      return stop_of(step);
    registers_.set(architecture::kInstructionPointer, state.ip);
    registers_.set(architecture::kStackPointer, state.sp);
    registers_.set(architecture::kFramePointer, state.fp);
    source_ = FrameSource::kCfi;
    is_exact_ = false;
    return std::nullopt;
  }

  std::optional<Stop> step_blindly(RuleKind kind) {
    FrameState state = registers_.state();
    const auto found = step_without_cfi(space_, kind, state, stack_, frame());
    if (const auto* stop = std::get_if<Stop>(&found))
      return *stop;
    registers_ = Registers(state);
    source_ = std::get<FrameSource>(found);
    is_exact_ = false;
    return std::nullopt;
  }

  AddressSpace& space_;
  const StackView& stack_;
  Registers registers_;
  bool is_exact_;
  bool is_elsewhere_ = false;
  FrameSource source_ = FrameSource::kCfi;
  Effort effort_;
};

}  // namespace

bool begin_walk(const WalkStart& start, const StackView& stack, std::span<Frame> out,
                WalkResult& result, HistoryScratch* scratch) {
  const FrameState state = start.registers.state();
  const bool is_exact = !start.is_caller;
  if (out.empty()) {
    result = {0, Stop::kTooDeep, state, is_exact};
    return false;
  }
  if (state.ip > Frame::kMaxAddress) {
    result = {0, Stop::kBadReturnAddress, state, is_exact};
    return false;
  }
  out.front() = Frame(state.ip, FrameSource::kCfi, is_exact);
  if (scratch != nullptr)
    scratch->note(0, state);
  if (state.sp < stack.start() || state.sp > stack.end()) {
    result = {1, Stop::kStackNotCaptured, state, is_exact};
    return false;
  }
  return true;
}

WalkResult walk_with_all_registers(AddressSpace& space, const WalkStart& start,
                                   const StackView& stack, std::span<Frame> out,
                                   HistoryScratch* scratch) {
  WalkResult nothing;
  if (!begin_walk(start, stack, out, nothing, scratch))
    return nothing;
  GeneralWalk walk(space, start, stack);
  std::size_t count = 1;
  for (;;) {
    const FrameState here = walk.state();
    const bool is_exact = walk.frame().is_exact();
    if (count > 1 && !walk.is_frame() && is_trampoline(space, here.ip)) {
      out[count - 1] = Frame(here.ip, FrameSource::kCfi, true);
      return {count, Stop::kBadReturnAddress, here, is_exact};
    }
    if (count > 1 && !walk.is_frame())
      return {count - 1, stop_at_no_code(space, here, out[count - 2]), here, is_exact};
    if (walk.is_elsewhere())
      return {count, Stop::kStackNotCaptured, here, is_exact};
    if (const auto stop = walk.step())
      return {count, *stop, here, is_exact};
    if (count == out.size())
      return {count, Stop::kTooDeep, walk.state(), walk.frame().is_exact()};
    if (scratch != nullptr)
      scratch->note(count, walk.state());
    out[count++] = walk.frame();
  }
}

}  // namespace pe::unwind
