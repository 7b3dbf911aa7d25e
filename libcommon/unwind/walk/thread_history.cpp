// SPDX-License-Identifier: MIT
#include "unwind/walk/thread_history.h"

#include <algorithm>
#include <limits>

#include "unwind/architecture.h"
#include "unwind/walk/history_recorder.h"

namespace pe::unwind {
namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

}  // namespace

HistoryRecorder::HistoryRecorder(ThreadHistory& history, HistoryScratch& scratch,
                                 const StackView& stack, std::span<Frame> out,
                                 std::uint64_t generation)
    : history_(history), scratch_(scratch), stack_(stack), out_(out) {
  if (history.generation_ != generation)
    history.forget();
  history.generation_ = generation;
  scratch.reserve(out.size());
  candidates_ = history.needed_end_ <= stack.end() ? history.count_ : 0;
  candidates_ = std::min(candidates_, history.barrier_);
}

/// All slots are between the matched frame's stack pointer and needed_end_, so they were captured.
/// One loop compares and copies: a second would cost another mispredicted exit, which is as much as
/// ten frames.
bool HistoryRecorder::has_same_words(std::size_t match, std::size_t number) noexcept {
  const std::uint64_t* sps = history_.sps_.data();
  const Frame* frames = history_.frames_.data();
  const StackView stack = stack_;
  Frame* out = out_.data() + number + match;
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < match; ++i) {
    const Frame frame = frames[i];
    difference |= stack.word(sps[i] - architecture::kWordBytes) ^ frame.address();
    *out-- = frame;  // provisional: not counted if the words differ
  }
  const FramePointerUse* uses = history_.uses_.data();
  std::size_t kept = 0;
  std::size_t through = 0;
  for (; kept < history_.use_count_ && uses[kept].used_by <= match; ++kept) {
    if (uses[kept].read_by <= match)
      difference |= stack.word(uses[kept].slot_avma) ^ uses[kept].value;
    else
      ++through;
  }
  kept_uses_ = kept;
  through_uses_ = through;
  return difference == 0;
}

std::size_t HistoryRecorder::try_match(std::size_t number) noexcept {
  const std::size_t match = candidates_ - 1;
  const std::size_t total = number + 1 + match;
  if (total > out_.size()) {
    // Later matches would have as many frames.  Searching for them would cost the square of the
    // depth.
    candidates_ = 0;
    return 0;
  }
  if (has_same_words(match, number)) {
    match_ = match;
    walked_ = number + 1;
    return total;
  }
  ++failed_matches_;
  candidates_ = std::min(match, first_difference(match));
  return 0;
}

/// Returns the number of the outermost frame that cannot match, because a word outside it differs.
/// So a walk fails to match once or twice, not once a frame.
std::size_t HistoryRecorder::first_difference(std::size_t match) const noexcept {
  std::size_t first = 0;
  while (first < match && stack_.word(history_.sps_[first] - architecture::kWordBytes) ==
                              history_.frames_[first].address())
    ++first;
  for (const FramePointerUse& use : std::span(history_.uses_).first(history_.use_count_))
    if (use.used_by <= match && use.read_by <= match && stack_.word(use.slot_avma) != use.value)
      first = std::min<std::size_t>(first, use.read_by);
  return first;
}

void HistoryRecorder::splice_uses(std::size_t match, std::size_t walked) noexcept {
  FramePointerUse* uses = history_.uses_.data();
  const auto number_of = [&](std::uint32_t walk_number) {
    return static_cast<std::uint32_t>(match + walked - 1 - walk_number);
  };
  // The new walk has read a frame pointer that passes through the match, not the old one.
  for (std::size_t i = kept_uses_ - through_uses_; i < kept_uses_; ++i) {
    uses[i].slot_avma = source_;
    uses[i].read_by = source_ == 0 ? kNever : number_of(read_by_);
  }
  std::size_t count = kept_uses_;
  for (std::size_t i = use_count_; i-- > 0;) {
    const FramePointerUse& use = scratch_.uses[i];
    uses[count++] = {use.slot_avma, use.value, use.slot_avma == 0 ? kNever : number_of(use.read_by),
                     number_of(use.used_by)};
  }
  history_.use_count_ = count;
}

void HistoryRecorder::splice(std::size_t match, std::size_t walked) {
  const std::size_t total = match + walked;
  history_.reserve(total);
  for (std::size_t i = 0; i < walked; ++i) {
    const std::size_t number = total - 1 - i;
    history_.frames_[number] = out_[i];
    history_.sps_[number] = scratch_.sps[i];
    history_.fps_[number] = scratch_.fps[i];
  }
  history_.count_ = total;
  history_.barrier_ = last_barrier_ == ThreadHistory::kNoBarrier ? ThreadHistory::kNoBarrier
                                                                 : total - 1 - last_barrier_;
}

void HistoryRecorder::keep_joined() {
  splice(match_, walked_);
  splice_uses(match_, walked_);
}

void HistoryRecorder::keep_whole(std::size_t count) {
  if (count == 0)
    return history_.forget();
  splice(0, count);
  history_.needed_end_ = std::max(history_.sps_[0], zero_end_);
  kept_uses_ = through_uses_ = 0;
  if (zero_end_ != 0)  // compared like a frame pointer that the outermost frame used
    history_.uses_[kept_uses_++] = {zero_end_ - architecture::kWordBytes, 0, 0, 0};
  splice_uses(0, count);
}

}  // namespace pe::unwind
