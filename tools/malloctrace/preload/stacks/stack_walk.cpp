// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_walk.h"

#include <algorithm>
#include <array>

#include "malloctrace/preload/stacks/all_registers.h"
#include "unwind/walk/row_step.h"

namespace pe::malloctrace {
namespace {

using unwind::Rule;
using unwind::RuleKind;
using unwind::StackView;
using unwind::Step;
namespace architecture = unwind::architecture;

constexpr std::uint64_t kWord = architecture::kWordBytes;

std::uint64_t word_at(std::uint64_t avma) noexcept {
  const auto* word =
      reinterpret_cast<const std::uint64_t*>(avma);  // NOLINT(performance-no-int-to-ptr)
  return load_relaxed(*word);
}

StackView view_of(std::uint64_t sp, std::uint64_t end) noexcept {
  const auto* first = reinterpret_cast<const std::byte*>(sp);  // NOLINT(performance-no-int-to-ptr)
  return {sp, Bytes(first, end > sp ? end - sp : 0)};
}

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
  return new_.map(kFirstFrames) && places_.map(kFirstFrames) && details_.map(kFirstFrames) &&
         fp_words_.map(kFirstFrames);
}

void StackWalk::stop() noexcept {
  new_.unmap();
  places_.unmap();
  details_.unmap();
  fp_words_.unmap();
}

/// Returns the number of the outermost kept frame one of whose words has changed; kept_count_ if
/// none has.
std::size_t StackWalk::first_changed() const noexcept {
  constexpr std::size_t kAtOnce = 4;
  const Place* places = places_.data();
  const std::size_t count = kept_count_;
  const auto difference = [places](std::size_t i) {
    return word_at(places[i].sp - kWord) ^ places[i].key.avma();
  };
  std::size_t same = 0;
  for (; same + kAtOnce <= count; same += kAtOnce)
    if ((difference(same) | difference(same + 1) | difference(same + 2) | difference(same + 3)) !=
        0)
      break;
  while (same < count && difference(same) == 0)
    ++same;
  const Details* details = details_.data();
  const std::size_t words = details[std::min(same, count - 1)].fp_words_end;
  for (std::size_t i = 0; i < words; ++i)
    if (word_at(fp_words_[i].avma) != fp_words_[i].value)
      return std::partition_point(details, details + same,
                                  [i](const Details& one) { return one.fp_words_end <= i; }) -
             details;
  return same;
}

/// Returns how many of the kept frames may be joined: all words outside of them are unchanged.  The
/// first changed frame may be joined, because its words concern its inside.
std::size_t StackWalk::joinable() const noexcept {
  if (kept_count_ == 0 || max_depth_ != 0)
    return 0;
  if (zero_slot_ != 0 && word_at(zero_slot_) != 0)
    return 0;  // the stack continues
  return std::min({kept_count_, barrier_, first_changed() + 1});
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
  return doubled(fp_words_) && doubled(details_) && doubled(places_) && doubled(new_);
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
      find_all_registers(*codes_, at.state, at.stack.end(), registers))
    step = codes_->step_by_row(code.key, registers, at.stack).step;
  if (!unwind::leads_to_a_frame(step, at.is_exact, is_signal_frame))
    return step == Step::kEndOfStack ? Next::kEnd : Next::kIncomplete;
  at.state = registers.state();
  at.fp_slot = 0;
  at.is_exact = is_signal_frame;
  new_barrier_ = at.count;
  if (step == Step::kOtherStack) {
    is_elsewhere_ = true;
    at.stack = view_of(at.state.sp, find_end_(at.state.sp).avma);
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

/// Whether a kept frame may be joined with this frame pointer.
template <typename Details>
bool has_fp_of(const Details& kept, std::uint64_t fp) noexcept {
  return kept.needs_fp == 0 || kept.fp == fp;
}

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
  const Place* places = places_.data();
  const Details* details = details_.data();
  std::size_t next = candidate;
  unwind::FrameState state = position.state;
  std::uint64_t fp_slot = position.fp_slot;
  CodeKey key(state.ip, position.is_exact);
  NewFrame* out = new_.data() + position.count;
  const NewFrame* end = new_.data() + room_for_new();
  Pause pause = Pause::kIsFull;
  while (true) {
    while (next != 0 && places[next - 1].sp < state.sp)
      --next;
    if (next != 0 && next <= limit && places[next - 1].sp == state.sp &&
        places[next - 1].key == key && has_fp_of(details[next - 1], state.fp)) {
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
  const std::size_t room = new_.size() - kept_count_ - 1;
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
/// new_; kNone if the walk has ended.
std::size_t StackWalk::walk_to_join(Position& at, std::size_t limit) noexcept {
  std::size_t candidate = kept_count_;
  Next next = Next::kGoOn;
  while (next == Next::kGoOn) {
    const Pause pause = walk_common(at, is_elsewhere_ ? 0 : limit, candidate);
    if (pause == Pause::kJoins)
      return candidate - 1;
    next = go_on(at, pause);
  }
  is_incomplete_ = next == Next::kIncomplete;
  is_cut_ = next == Next::kNoRoom;
  return kNone;
}

/// Puts the new frames inside of the joined one, or replaces all.
void StackWalk::keep(std::size_t joined, const Position& at) noexcept {
  const NewFrame* from = new_.data();
  Details* details = details_.data();
  Place* places = places_.data();
  FpWord* fp_words = fp_words_.data();
  std::size_t number = 0;
  std::uint32_t words = 0;
  bool needs_fp = false;
  StackHash hash;
  if (joined != kNone) {
    Details& frame = details[joined];
    number = joined + 1;
    needs_fp = frame.needs_fp != 0;
    hash = frame.hash;
    // The walk has reached this frame in another way.
    words = joined == 0 ? 0 : details[joined - 1].fp_words_end;
    const NewFrame& again = from[at.count];
    if (needs_fp && again.fp_slot != 0)
      fp_words[words++] = {again.fp_slot, again.fp};
    frame.fp = again.fp;
    frame.fp_words_end = words & 0x7fffffffU;
  } else {
    zero_slot_ = new_zero_slot_;
  }
  barrier_ = new_barrier_ == 0 ? kNone : number + (at.count - new_barrier_);
  bool is_handed_on = joined != kNone && needs_fp && from[at.count].fp_slot == 0;
  for (std::size_t i = at.count; i-- > 0;) {
    const NewFrame& frame = from[i];
    hash = hash.with(frame.code);
    needs_fp = is_handed_on || uses_frame_pointer(frame.rule);
    is_handed_on = needs_fp && frame.fp_slot == 0;
    if (needs_fp && frame.fp_slot != 0)
      fp_words[words++] = {frame.fp_slot, frame.fp};
    places[number] = {frame.sp, frame.key};
    details[number++] = {frame.fp, hash, frame.code, needs_fp ? 1U : 0U, words & 0x7fffffffU};
  }
  kept_count_ = number;
}

WalkedStack StackWalk::walk(const unwind::FrameState& caller, StackEnd end) noexcept {
  if (end.avma != stack_end_ || generation_ != codes_->generation()) [[unlikely]] {
    kept_count_ = 0;
    stack_end_ = end.avma;
    generation_ = codes_->generation();
  }
  std::size_t kept = kept_count_;
  while (kept != 0 && places_[kept - 1].sp < caller.sp)
    --kept;
  kept_count_ = kept;
  is_incomplete_ = is_cut_ = false;
  ++counts_.walks;
  const std::size_t limit = joinable();
  if (limit == kept && kept != 0) {
    const Place& place = places_[kept - 1];
    const Details& details = details_[kept - 1];
    if (place.sp == caller.sp && place.key == CodeKey(caller.ip, false) &&
        (details.needs_fp == 0 || details.fp == caller.fp)) {  // nothing new
      counts_.reused += kept;
      return {details.hash, static_cast<std::uint32_t>(kept)};
    }
  }
  return walk_anew(caller, end, limit);
}

/// The general case: there are new frames.
WalkedStack StackWalk::walk_anew(const unwind::FrameState& caller, StackEnd end,
                                 std::size_t limit) noexcept {
  Position at{caller, view_of(caller.sp, end.avma), 0, false, 0};
  is_elsewhere_ = false;
  new_barrier_ = 0;
  new_zero_slot_ = 0;
  const std::size_t joined = walk_to_join(at, limit);
  counts_.walked += at.count;
  counts_.reused += joined == kNone ? 0 : joined + 1;
  keep(joined, at);
  if (kept_count_ == 0)
    return {{}, 0};
  if (is_cut_ || is_incomplete_ || is_elsewhere_ || end.is_foreign) [[unlikely]]
    stack_end_ = kNoStack;
  return {details_[kept_count_ - 1].hash, static_cast<std::uint32_t>(kept_count_)};
}

}  // namespace pe::malloctrace
