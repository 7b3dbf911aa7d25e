// SPDX-License-Identifier: MIT
#include "unwind/walk/general_walk.h"

#include "unwind/architecture.h"
#include "unwind/cfi/expression.h"
#include "unwind/walk/row_step.h"

namespace pe::unwind {
namespace {

/// A frame pointer up to this far above the copied stack is assumed to point at a frame that was
/// cut off.  One further away is assumed to be another value.  This is the usual limit of a stack,
/// ulimit -s.
constexpr std::uint64_t kMaxStackBytes = std::uint64_t{8} << 20;

bool returns_to_code(const AddressSpace& space, const FrameState& caller) {
  return space.find(caller.ip - 1) != nullptr;
}

/// Whether the frame is in an image that has tables, although none describes this code.
bool is_of_described_image(AddressSpace& space, Frame frame) {
  const auto place = space.place(frame.address() - (frame.is_exact() ? 0 : 1));
  return place && place->table->has_rules();
}

/// Whether code that cannot be read is a stub, by the shape of its frame.  That is one word, and a
/// return address to code with rules, by which the next caller is also code.  A single word that a
/// function has left behind may look like that.  Two in a row, each in its place, are unlikely to.
bool is_like_a_stub(AddressSpace& space, Frame frame, const FrameState& caller,
                    const StackView& stack) {
  if (frame.is_exact() || !space.is_unread(frame.address() - 1) || caller.ip == 0 ||
      !space.place(caller.ip - 1))
    return false;
  FrameState next = caller;
  return architecture::execute(space.rule(caller.ip - 1), next, stack) == Step::kDone &&
         returns_to_code(space, next);
}

/// Whether a frame whose frame pointer is 0 is the outermost one.  Assembly without CFI may use
/// that register for anything; its callers' return addresses are further up.  Above the first
/// function of a thread are arguments, or the end of the stack.
bool is_outermost(AddressSpace& space, const FrameState& state, const StackView& stack,
                  Frame frame) {
  constexpr std::uint64_t kWords = 16;
  if (frame.source() != FrameSource::kFramePointer &&
      (frame.is_exact() || !is_of_described_image(space, frame)))
    return false;
  for (std::uint64_t i = 0; i < kWords; ++i) {
    const auto word = stack.read(state.sp + i * architecture::kWordBytes);
    if (!word)
      break;
    if (*word != 0 && space.is_return_address(*word))
      return false;
  }
  return true;
}

}  // namespace

std::variant<FrameSource, Stop> step_without_cfi(AddressSpace& space, RuleKind rule,
                                                 FrameState& state, const StackView& stack,
                                                 Frame frame) {
  const bool is_code = rule == RuleKind::kNone;
  FrameState caller = state;
  const Step by_frame_pointer = architecture::step_by_frame_pointer(caller, stack);
  if (is_code && by_frame_pointer == Step::kDone && returns_to_code(space, caller)) {
    state = caller;
    return FrameSource::kFramePointer;
  }
  caller = state;
  const Step as_leaf = architecture::step_as_leaf(caller, stack);
  if (frame.is_exact() && as_leaf == Step::kDone && returns_to_code(space, caller)) {
    state = caller;
    return FrameSource::kLeaf;
  }
  if (!is_code)
    return Stop::kBadReturnAddress;
  caller = state;
  if (architecture::step_as_stub(caller, stack) == Step::kDone &&
      is_like_a_stub(space, frame, caller, stack)) {
    state = caller;
    return FrameSource::kLeaf;
  }
  if (state.fp == 0)
    return is_outermost(space, state, stack, frame) ? Stop::kEndOfStack : Stop::kNoUnwindInfo;
  const bool is_cut_off =
      by_frame_pointer == Step::kNotCaptured && state.fp - stack.end() < kMaxStackBytes;
  return is_cut_off ? Stop::kStackNotCaptured : Stop::kNoUnwindInfo;
}

std::optional<Step> step_by_copy_of_cfa(AddressSpace& space, const CfiRow& row,
                                        architecture::Registers& registers,
                                        const StackView& stack) {
  using architecture::kWordBytes;
  constexpr std::uint64_t kMostBytes = 8192;  // from the stack pointer to the CFA
  const auto load = row.cfa.is_expression ? simple_expression(row.cfa.expression) : std::nullopt;
  const std::uint64_t sp = registers.state().sp;
  const std::int64_t offset = load ? load->offset : 0;
  if (!load || !load->is_load || load->register_number != architecture::kStackPointer ||
      offset >= 0 || stack.has_word(sp + static_cast<std::uint64_t>(offset)))
    return std::nullopt;
  for (std::uint64_t at = sp; at - sp < kMostBytes && stack.has_word(at); at += kWordBytes) {
    const std::uint64_t cfa = stack.word(at) + load->addend;
    const auto return_address = cfa > at + kWordBytes && cfa - sp < kMostBytes
                                    ? stack.read(cfa - kWordBytes)
                                    : std::nullopt;
    if (!return_address || *return_address == 0 || !space.place(*return_address - 1))
      continue;
    CfiRow found = row;
    found.cfa = {.is_expression = false,
                 .register_number = architecture::kStackPointer,
                 .offset = static_cast<std::int64_t>(cfa - sp),
                 .expression = {}};
    return step_row(found, registers, stack);
  }
  return std::nullopt;
}

bool is_trampoline(AddressSpace& space, std::uint64_t avma) {
  return space.find(avma) != nullptr && space.find(avma - 1) == nullptr && !space.place(avma);
}

Stop stop_at_no_code(const AddressSpace& space, const FrameState& state, Frame callee) {
  const bool is_end =
      state.ip == 0 && !space.is_of_runtime(callee.address() - (callee.is_exact() ? 0 : 1));
  return is_end ? Stop::kEndOfStack : Stop::kBadReturnAddress;
}

Stop stop_of(Step step) noexcept {
  switch (step) {
    case Step::kEndOfStack:
      return Stop::kEndOfStack;
    case Step::kNotCaptured:
    case Step::kOtherStack:
      return Stop::kStackNotCaptured;
    case Step::kNoProgress:
    case Step::kStandsStill:
      return Stop::kNoProgress;
    case Step::kDone:
    case Step::kUnknownRegister:
    case Step::kUnusable:
      break;
  }
  return Stop::kNoUnwindInfo;
}

std::string_view to_string(Stop stop) noexcept {
  switch (stop) {
    case Stop::kEndOfStack:
      return "end of stack";
    case Stop::kNoUnwindInfo:
      return "no unwind info";
    case Stop::kStackNotCaptured:
      return "stack not captured";
    case Stop::kNoProgress:
      return "no progress";
    case Stop::kBadReturnAddress:
      return "bad return address";
    case Stop::kTooDeep:
      break;
  }
  return "too deep";
}

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
