// SPDX-License-Identifier: MIT
#include "stacktop/wait_stacks.h"

#include <algorithm>
#include <span>

#include "painting/svg/colors.h"

namespace pe::stacktop {
namespace {

constexpr std::string_view kStill = "[still waiting]";

/// Returns what the thread waited for, if the frame's text says that: "lock" of "[lock]".
std::string_view kind_of(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']'))
    return {};
  text = text.substr(1, text.size() - 2);
  const bool is_known = std::ranges::any_of(painting::kKindsOfWaits,
                                            [&](const auto& kind) { return kind.second == text; });
  return is_known ? text : std::string_view();
}

bool has_mark(std::string_view frame, std::string_view letters) {
  return frame.ends_with(']') && painting::without_mark(frame).size() < frame.size() &&
         letters.find(frame[frame.size() - 2]) != letters.npos;
}

/// Returns how well a wait is known by a frame: 0: not at all.
int rank_of_code(std::string_view frame) {
  if (frame.empty() || frame.starts_with('[') || has_mark(frame, "k"))
    return 0;
  // A function that ended in a jump may be of a library.
  return has_mark(frame, "sj") ? 3 : has_mark(frame, "lt") ? 1 : 2;
}

void split(std::string_view stack, std::vector<std::string_view>& frames) {
  frames.clear();
  for (;;) {
    const auto end = stack.find(';');
    frames.push_back(stack.substr(0, end));
    if (end == stack.npos)
      return;
    stack.remove_prefix(end + 1);
  }
}

/// The mark of an inlined function does not show whose code it is: that of its caller.
int rank_of(std::span<const std::string_view> frames, std::size_t at) {
  while (at > 1 && has_mark(frames[at], "i"))
    --at;
  return rank_of_code(frames[at]);
}

/// Returns the number of frames up to the function at which a stack is cut.
std::size_t end_of(std::span<const std::string_view> frames) {
  std::size_t best = 1;  // the thread's name
  int rank = 0;
  for (std::size_t i = frames.size(); i-- > 1 && rank < 3;)
    if (const int found = rank_of(frames, i); found > rank) {
      rank = found;
      best = i + 1;
    }
  return best;
}

}  // namespace

void WaitStacks::read(std::span<const folded::Fact> facts) {
  const auto event = std::ranges::find(facts, "event", &folded::Fact::key);
  all_wait_ = event != facts.end() && event->value == "offcpu";
}

std::string_view WaitStacks::cut(std::string_view stack) {
  const auto last = stack.substr(stack.rfind(';') + 1);  // npos + 1 is 0
  is_wait_ = false;
  if (!all_wait_ && !last.starts_with('[') && !last.ends_with("_[o]"))
    return stack;  // nearly all stacks
  split(stack, frames_);
  if (frames_.size() > 1 && painting::without_mark(frames_.back()) == kStill)
    frames_.pop_back();
  const std::string_view leaf = painting::without_mark(frames_.back());
  std::string_view kind = frames_.size() > 1 ? kind_of(leaf) : std::string_view();
  const bool has_kind = !kind.empty();
  if (!has_kind && !all_wait_ && !frames_.back().ends_with("_[o]"))
    return stack;
  is_wait_ = true;
  if (std::ranges::find(frames_, "--") != frames_.end())
    return stack;  // chains of wakers
  if (has_kind)
    frames_.pop_back();
  else
    kind = "waiting";
  const std::size_t size = end_of(frames_);
  const auto end = frames_[size - 1];
  text_.assign(stack.data(), static_cast<std::size_t>(end.data() + end.size() - stack.data()));
  text_.append(";").append(painting::without_mark(end)).append(": ").append(kind);
  return text_;
}

}  // namespace pe::stacktop
