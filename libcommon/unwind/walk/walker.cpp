// SPDX-License-Identifier: MIT
#include "unwind/walk/walker.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <variant>

#include "unwind/walk/general_walk.h"
#include "unwind/walk/row_step.h"
#include "unwind/walk/thread_history.h"

namespace pe::unwind {
namespace {

using architecture::kWordBytes;
using architecture::Registers;

/// Walks one stack with the cache.  `Recorder` receives the data that a ThreadHistory needs.
template <typename Recorder>
class Walk {
 public:
  Walk(RuleCache& cache, AddressSpace& space, const WalkStart& start, const StackView& stack,
       std::span<Frame> out, Recorder& recorder)
      : cache_(cache),
        salt_(RuleCache::salt_of(cache.generation(space))),
        space_(space),
        start_(start),
        stack_(stack),
        out_(out),
        recorder_(recorder) {}

  /// False if this stack needs a walk with all registers, or one without the cache.  The first
  /// frame must have been written.
  bool run(WalkResult& result);

  /// Whether the rest was copied from the history.
  [[nodiscard]] bool has_joined() const noexcept { return has_joined_; }

 private:
  /// The state between two steps.  The next step leaves the last frame that was written.
  struct Position {
    FrameState state;
    std::uint64_t key;  ///< of the cache: state.ip, plus one if that is exact
    std::size_t count;  ///< number of frames written
  };

  std::optional<Stop> take_common_steps(Position& at);
  Step enter(FrameState& state, const StackView& stack, std::uint64_t base,
             RuleCache::Found found) noexcept;
  std::optional<Stop> take_rare_step(Position& at);
  std::optional<Stop> step_by_rule(Rule rule, Position& at);
  std::optional<Stop> step_by_full_row(Position& at);
  std::optional<Stop> step_blindly(RuleKind kind, Position& at);
  std::optional<Stop> write(Position& at, FrameSource source, bool is_exact);
  Stop write_elsewhere(Position& at, bool is_exact);
  bool joins(std::size_t& count, const FrameState& state, std::uint64_t keys) noexcept;
  std::optional<Stop> give_up() noexcept {
    has_given_up_ = true;
    return Stop::kNoUnwindInfo;
  }

  RuleCache& cache_;
  std::uint64_t salt_;
  AddressSpace& space_;
  const WalkStart& start_;
  const StackView& stack_;
  std::span<Frame> out_;
  Recorder& recorder_;
  Effort effort_;
  std::uint64_t keys_ = 0;  ///< all bits of the keys that were found in the cache
  bool has_joined_ = false;
  bool has_given_up_ = false;
};

template <typename Recorder>
bool Walk<Recorder>::run(WalkResult& result) {
  Position at{start_.registers.state(), 0, 1};
  at.key = at.state.ip + (start_.is_caller ? 0 : 1);
  std::optional<Stop> why;
  if (joins(at.count, at.state, at.key))
    why = Stop::kEndOfStack;
  while (!why) {
    why = take_common_steps(at);
    if (!why)
      why = take_rare_step(at);
  }
  // A key outside user space could have matched another key (RuleCache).
  if (has_given_up_ || !RuleCache::can_hold(keys_))
    return false;
  result.frames = at.count;
  result.stop = *why;
  result.last = at.state;
  result.last_is_exact = at.key != at.state.ip;
  return true;
}

/// The inner loop.  It runs until an address has no common rule in the cache.  Its state is in
/// local variables: a variable whose address others get cannot stay in registers.  Its stack
/// pointer points into the copy.
template <typename Recorder>
std::optional<Stop> Walk<Recorder>::take_common_steps(Position& at) {
  // These are copies, because the compiler must assume that writing frames changes the members.
  const StackView stack = stack_.in_place();
  const std::uint64_t bias = stack_.bias();
  const std::span<Frame> out = out_;
  const std::uint64_t salt = salt_;
  FrameState state{at.state.ip, at.state.sp + bias, at.state.fp};
  std::uint64_t key = at.key;
  std::uint64_t keys = keys_;
  std::size_t count = at.count;
  std::optional<Stop> why;
  while (!why) {
    const RuleCache::Found found = cache_.look_up(key, salt);
    std::uint64_t base = state.sp;
    Step step = Step::kDone;
    // There are two calls, so that the next load waits for the branch's prediction, not for the
    // tag.
    if (found.is(RuleKind::kStackPointer)) [[likely]] {
      step = enter(state, stack, base, found);
    } else if (found.is(RuleKind::kFramePointer)) {
      recorder_.uses_frame_pointer(count - 1);
      base = state.fp + bias;
      step = enter(state, stack, base, found);
    } else {
      break;
    }
    keys |= key;
    if (step != Step::kDone) [[unlikely]] {
      // The reason depends on where the stack was, not on where its copy is.
      const std::uint64_t cfa = base - bias + kWordBytes * found.cfa_words();
      why = stop_of(architecture::check_cfa(cfa, state.sp - bias, stack_));
      break;
    }
    key = state.ip;
    if (count == out.size()) [[unlikely]] {
      why = Stop::kTooDeep;
      break;
    }
    out[count++] = Frame(key);
    if (joins(count, {key, state.sp - bias, state.fp}, keys | key))
      why = Stop::kEndOfStack;
  }
  keys_ = keys;
  at.state = {state.ip, state.sp - bias, state.fp};
  at.key = key;
  at.count = count;
  return why;
}

template <typename Recorder>
Step Walk<Recorder>::enter(FrameState& state, const StackView& stack, std::uint64_t base,
                           RuleCache::Found found) noexcept {
  const std::uint64_t sp = state.sp;
  const std::uint64_t slot = found.slot();
  const Step step = architecture::enter_caller(state, stack, base, found.cfa_words(), found.slot());
  if (step == Step::kDone && kWordBytes * slot - 1 < state.sp - sp)  // as there: it was read
    recorder_.reads_frame_pointer(state.sp - kWordBytes * slot - stack_.bias());
  return step;
}

template <typename Recorder>
bool Walk<Recorder>::joins(std::size_t& count, const FrameState& state,
                           std::uint64_t keys) noexcept {
  const std::size_t total = recorder_.enters(count - 1, state);
  if (total == 0 || !RuleCache::can_hold(keys))
    return false;
  has_joined_ = true;
  count = total;
  return true;
}

template <typename Recorder>
std::optional<Stop> Walk<Recorder>::take_rare_step(Position& at) {
  const RuleCache::Found found = cache_.look_up(at.key, salt_);
  if (found.is_hit()) {
    keys_ |= at.key;
    return step_by_rule(found.rule(), at);
  }
  const Rule rule = cache_.fill(at.key, salt_, space_);
  if (rule.kind() == RuleKind::kNotExecutable)
    return step_by_rule(rule, at);
  // The rule is now in the cache, unless the cache cannot hold the key.
  return RuleCache::can_hold(at.key) ? std::nullopt : give_up();
}

template <typename Recorder>
std::optional<Stop> Walk<Recorder>::step_by_rule(Rule rule, Position& at) {
  const bool is_exact = at.key != at.state.ip;
  switch (rule.kind()) {
    case RuleKind::kNotExecutable:
      if (!is_exact && at.count > 1) {
        if (is_trampoline(space_, at.state.ip)) {
          out_[at.count - 1] = Frame(at.state.ip, FrameSource::kCfi, true);
          return Stop::kBadReturnAddress;
        }
        --at.count;  // the last entry was no frame
        if (at.state.ip == 0)
          recorder_.ends_at_zero(at.state.sp);
        return stop_at_no_code(space_, at.state, out_[at.count - 1]);
      }
      return step_blindly(rule.kind(), at);
    case RuleKind::kNone:
      return step_blindly(rule.kind(), at);
    case RuleKind::kGeneral:
      return step_by_full_row(at);
    case RuleKind::kRealigned:
    case RuleKind::kSavedStackPointer:
      recorder_.passes_barrier(at.count - 1);
      break;
    case RuleKind::kStackPointer:
    case RuleKind::kFramePointer:
      return std::nullopt;  // common: it is now in the cache
    case RuleKind::kPlt:
    case RuleKind::kEnd:
      break;
  }
  const Step step = architecture::execute(rule, at.state, stack_);
  return step == Step::kDone ? write(at, FrameSource::kCfi, false) : stop_of(step);
}

template <typename Recorder>
std::optional<Stop> Walk<Recorder>::step_by_full_row(Position& at) {
  const auto place = space_.place(at.key - 1);
  const auto full = place ? place->table->full_row(place->svma) : std::nullopt;
  if (!full || !effort_.spend(*full))
    return Stop::kNoUnwindInfo;
  Registers registers = at.count == 1 ? start_.registers : Registers(at.state);
  Step step = step_row(full->row, registers, stack_);
  FrameSource source = FrameSource::kCfi;
  if (step == Step::kNotCaptured)
    if (const auto guessed = step_by_copy_of_cfa(space_, full->row, registers, stack_)) {
      step = *guessed;
      source = FrameSource::kLeaf;
    }
  const bool is_done = leads_to_a_frame(step, at.key != at.state.ip, full->is_signal_frame);
  if (step == Step::kUnknownRegister || (is_done && !registers.get(architecture::kFramePointer)))
    return give_up();
  if (needs_another_stack(step, full->row))
    at.state.sp = 0;  // the place of that stack is unknown
  if (!is_done)
    return stop_of(step);
  recorder_.passes_barrier(at.count - 1);
  at.state = registers.state();
  return step == Step::kOtherStack ? write_elsewhere(at, full->is_signal_frame)
                                   : write(at, source, full->is_signal_frame);
}

template <typename Recorder>
std::optional<Stop> Walk<Recorder>::step_blindly(RuleKind kind, Position& at) {
  const bool is_exact = at.key != at.state.ip;
  const std::uint64_t fp = at.state.fp;
  recorder_.uses_frame_pointer(at.count - 1);
  const auto found = step_without_cfi(space_, kind, at.state, stack_, out_[at.count - 1]);
  const auto* source = std::get_if<FrameSource>(&found);
  if (source != nullptr && *source == FrameSource::kFramePointer)
    recorder_.reads_frame_pointer(fp);
  else if (is_exact || source != nullptr)  // the stack's words influenced the result, caller or not
    recorder_.passes_barrier(at.count - 1);
  if (source == nullptr)
    return std::get<Stop>(found);
  return write(at, *source, false);
}

template <typename Recorder>
std::optional<Stop> Walk<Recorder>::write(Position& at, FrameSource source, bool is_exact) {
  at.key = at.state.ip + (is_exact ? 1 : 0);
  if (at.count == out_.size())
    return Stop::kTooDeep;
  if (at.state.ip > Frame::kMaxAddress)
    return give_up();
  out_[at.count++] = Frame(at.state.ip, source, is_exact);
  return joins(at.count, at.state, keys_ | at.key) ? std::optional(Stop::kEndOfStack)
                                                   : std::nullopt;
}

/// Writes a frame from which no step is possible.  It is not compared with the history, because the
/// history's words would be searched outside the copy.
template <typename Recorder>
Stop Walk<Recorder>::write_elsewhere(Position& at, bool is_exact) {
  at.key = at.state.ip + (is_exact ? 1 : 0);
  if (at.count == out_.size())
    return Stop::kTooDeep;
  if (at.state.ip > Frame::kMaxAddress || (!is_exact && space_.find(at.state.ip - 1) == nullptr))
    return stop_at_no_code(space_, at.state, out_[at.count - 1]);
  recorder_.ends_elsewhere(at.count, at.state.sp);
  out_[at.count++] = Frame(at.state.ip, FrameSource::kCfi, is_exact);
  return Stop::kStackNotCaptured;
}

}  // namespace

WalkResult Walker::walk(AddressSpace& space, const WalkStart& start, const StackView& stack,
                        std::span<Frame> out) {
  WalkResult result;  // filled in place: copies of it cost 12 ns a stack
  if (!begin_walk(start, stack, out, result))
    return result;
  NoRecorder recorder;
  if (!Walk<NoRecorder>(cache_, space, start, stack, out, recorder).run(result)) {
    ++statistics_.general_walks;
    result = walk_with_all_registers(space, start, stack, out);
  }
  count_stack(result);
  return result;
}

WalkResult Walker::walk(AddressSpace& space, const WalkStart& start, const StackView& stack,
                        std::span<Frame> out, ThreadHistory& history) {
  WalkResult result;
  scratch_.reserve(out.size());
  if (!begin_walk(start, stack, out, result, &scratch_)) {
    remember(result);
    return result;
  }
  HistoryRecorder recorder(history, scratch_, stack, out, cache_.generation(space));
  Walk<HistoryRecorder> walk(cache_, space, start, stack, out, recorder);
  if (!walk.run(result)) {
    ++statistics_.general_walks;
    result = walk_with_all_registers(space, start, stack, out, &scratch_);
  } else if (walk.has_joined()) {
    recorder.keep_joined();
    result.reused = recorder.reused();
  } else if (result.stop == Stop::kEndOfStack) {
    recorder.keep_whole(result.frames);
  }
  remember(result);
  statistics_.failed_matches += recorder.failed_matches();
  count_stack(result);
  return result;
}

void Walker::remember(const WalkResult& result) noexcept {
  last_frames_ = result.frames;
  last_reused_ = result.reused;
}

/// A joined stack has just become the history.  Its copied frames are the history's outermost ones.
std::span<const std::uint64_t> Walker::stack_pointers(const ThreadHistory& history) {
  assert(last_reused_ == 0 || history.size() == last_frames_);
  for (std::size_t i = 0; i < last_reused_; ++i)
    scratch_.sps[last_frames_ - 1 - i] = history.stack_pointer(i);
  return std::span(scratch_.sps).first(last_frames_);
}

void Walker::count_stack(const WalkResult& result) noexcept {
  ++statistics_.stacks;
  statistics_.frames += result.walked();
  statistics_.frames_reused += result.reused;
  cache_.count_look_ups(result.walked());
}

}  // namespace pe::unwind
