// SPDX-License-Identifier: MIT
#include "stackfold/refine.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "folded/build_details.h"

namespace pe::folded {

FramePattern::FramePattern(const std::string& option, std::span<const std::string> expressions) {
  expressions_.reserve(expressions.size());
  for (const std::string& text : expressions) {
    std::string why;
    auto expression = Expression::parse(text, why);
    if (!expression)
      throw UsageError(fmt::format("--{}: not a regular expression: '{}': {}", option, text, why));
    expressions_.push_back(std::move(*expression));
  }
}

bool FramePattern::matches(FrameId frame, const FrameTable& table) {
  if (frame >= known_.size())
    known_.resize(table.size(), Known::kNotYet);
  Known& known = known_[frame];
  if (known == Known::kNotYet) {
    const std::string_view text = table[frame];
    const bool is_match =
        std::any_of(expressions_.begin(), expressions_.end(),
                    [text](const Expression& expression) { return expression.matches(text); });
    known = is_match ? Known::kYes : Known::kNo;
  }
  return known == Known::kYes;
}

bool FramePattern::matches_any(std::span<const FrameId> frames, const FrameTable& table) {
  return std::any_of(frames.begin(), frames.end(),
                     [&](FrameId frame) { return matches(frame, table); });
}

}  // namespace pe::folded

namespace pe::fold {
namespace {

/// Maps each frame to the one with its stripped name.
class StrippedFrames {
 public:
  explicit StrippedFrames(folded::FrameTable& table) : table_(table) {}

  void replace(std::vector<folded::FrameId>& frames) {
    for (folded::FrameId& frame : frames) {
      if (frame >= numbers_.size())
        numbers_.resize(table_.size());
      if (!numbers_[frame])
        numbers_[frame] = table_.intern(folded::without_build_details(table_[frame]));
      frame = *numbers_[frame];
    }
  }

 private:
  folded::FrameTable& table_;
  std::vector<std::optional<folded::FrameId>> numbers_;
};

}  // namespace

Refiner::Refiner(const Options& options)
    : is_recursive_(options.is_recursive),
      strips_names_(options.strips_names),
      include_("include", options.include),
      exclude_("exclude", options.exclude) {}

LeftOut Refiner::apply(folded::FoldedCounts& from, folded::FoldedCounts& to) {
  LeftOut left_out;
  std::vector<folded::FrameId> kept;
  std::vector<std::optional<folded::StackId>> numbers;  // of the stacks in `to`
  folded::FrameTable& table = to.frames();
  StrippedFrames stripped(table);
  from.for_each([&](std::span<const folded::FrameId> frames, folded::Count count) {
    (void)left_out.of.add(count);  // saturates at Count::max(), as the output does
    if ((!include_.is_empty() && !include_.matches_any(frames, table)) ||
        exclude_.matches_any(frames, table)) {
      ++left_out.stacks;
      (void)left_out.count.add(count);
      numbers.emplace_back();
      return;
    }
    kept.assign(frames.begin(), frames.end());
    if (strips_names_)
      stripped.replace(kept);
    if (is_recursive_)
      kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    numbers.emplace_back(to.add(kept, count));
  });
  if (folded::Timeline* const timeline = from.timeline()) {
    timeline->renumber(numbers);
    to.set_timeline(std::move(*timeline));
  }
  return left_out;
}

}  // namespace pe::fold
