// SPDX-License-Identifier: MIT
#include "stackfold/exports/choice.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "stackfold/exports/firefox.h"
#include "stackfold/exports/pprof.h"
#include "stackfold/exports/speedscope.h"
#include "stackfold/folded_counts.h"
#include "stackfold/frame_text.h"
#include "stackfold/refine.h"

namespace pe::fold::exports {
namespace {

/// Does a stack (with its callers), or a thread's name, match --include or --exclude?
struct Matches {
  bool included = false, excluded = false;
};

class Chooser {
 public:
  Chooser(const Options& options, const Profile& profile)
      : profile_(profile),
        include_("include", options.include),
        exclude_("exclude", options.exclude) {}

  [[nodiscard]] bool is_idle() const { return include_.is_empty() && exclude_.is_empty(); }

  void look() {
    const auto& stacks = profile_.stacks();
    stacks_.resize(stacks.size());
    for (std::size_t i = 0; i < stacks.size(); ++i) {  // callers have lower numbers
      if (stacks[i].caller != kNoIndex)
        stacks_[i] = stacks_[stacks[i].caller];
      look_at(profile_.places()[stacks[i].place], stacks_[i]);
    }
    for (const Thread& thread : profile_.threads())
      look_at(root_text(thread.comm, thread.pid, thread.tid, RootName::kComm),
              threads_.emplace_back());
  }

  [[nodiscard]] bool keeps(Index stack, Index thread) const {
    const Matches& of_stack = stacks_[stack];
    const Matches& of_thread = threads_[thread];
    return (include_.is_empty() || of_stack.included || of_thread.included) && !of_stack.excluded &&
           !of_thread.excluded;
  }

 private:
  void look_at(const Place& place, Matches& matches) {
    if (place.line_count == 0)
      return look_at(unnamed(profile_, place), matches);
    for (Index n = 0; n < place.line_count; ++n)
      look_at(profile_.functions()[profile_.lines()[place.first_line + n].function].name, matches);
  }

  void look_at(std::string_view name, Matches& matches) {
    const folded::FrameId frame = names_.intern(clean_name(name));
    matches.included = matches.included || include_.matches(frame, names_);
    matches.excluded = matches.excluded || exclude_.matches(frame, names_);
  }

  const Profile& profile_;
  folded::FrameTable names_;
  folded::FramePattern include_, exclude_;
  std::vector<Matches> stacks_, threads_;
};

}  // namespace

std::size_t choose(const Options& options, Profile& profile) {
  Chooser chooser(options, profile);
  if (chooser.is_idle())
    return 0;
  chooser.look();
  return profile.keep_if([&](Index stack, Index thread) { return chooser.keeps(stack, thread); });
}

namespace {

constexpr FractionUnit kUnits[] = {
    {}, {1'000, "thousandths"}, {1'000'000, "millionths"}, {1'000'000'000, "billionths"}};

/// Returns the largest unit in which all counts are whole numbers.  If their sum reaches 2^63 in
/// it, returns the next larger unit in which the sum stays below.
FractionUnit unit_of(const folded::FoldedCounts& counts) {
  folded::Count sum;
  std::uint32_t finest = 0;  // the finest unit that any count needs
  bool fits = true;
  for (const folded::Count count : counts.counts()) {
    fits = sum.add(count) && fits;
    for (std::uint32_t i = 0; i < std::size(kUnits); ++i)
      if (folded::times({.whole = 0, .billionths = count.billionths}, kUnits[i].in_one)
              ->billionths == 0) {
        finest = std::max(finest, i);
        break;
      }
  }
  const auto is_small = [&](const FractionUnit& unit) {
    const auto all = folded::times(sum, unit.in_one);
    return all && all->whole <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  };
  while (finest > 0 && !(fits && is_small(kUnits[finest])))
    --finest;
  FractionUnit unit = kUnits[finest];
  for (const folded::Count count : counts.counts()) {
    const folded::Count fraction{.whole = 0, .billionths = count.billionths};
    unit.rounded += folded::times(fraction, unit.in_one)->billionths != 0 ? 1 : 0;
  }
  return unit;
}

/// Rounds to whole units, but never rounds a positive count to zero.
std::uint64_t rounded(folded::Count count, std::uint64_t units_in_one) {
  const folded::Count units = folded::times(count, units_in_one).value_or(folded::Count::max());
  const std::uint32_t up_from = units.whole == 0 ? 1 : folded::Count::kOne / 2;
  const bool is_up = units.billionths >= up_from && units.whole + 1 != 0;
  return units.whole + (is_up ? 1 : 0);
}

}  // namespace

FractionUnit add_folded(const folded::FoldedCounts& counts, bool with_times, Profile& profile) {
  if (counts.empty())
    return {};
  const FractionUnit unit = unit_of(counts);
  const Index event =
      profile.event({.name = "samples", .unit = std::string(unit.name), .by_period = true});
  const Index thread = profile.thread(0, 0, {});
  std::vector<Index> place_of(counts.frames().size(), kNoIndex);
  std::size_t order = 0;
  counts.for_each([&](std::span<const folded::FrameId> frames, folded::Count count) {
    Index stack = kNoIndex;
    for (const folded::FrameId frame : frames) {
      if (place_of[frame] == kNoIndex)
        place_of[frame] = profile.word(counts.frames()[frame]);
      stack = profile.stack(stack, place_of[frame]);
    }
    const std::uint64_t units = rounded(count, unit.in_one);
    profile.add(
        Sum{.stack = stack, .thread = thread, .event = event, .samples = units, .period = units});
    if (!with_times)
      return;
    profile.add(TimedSample{.time_ns = profile.first_time_ns + kNsPerMs * order++,
                            .period = units,
                            .stack = stack,
                            .thread = thread,
                            .event = event});
  });
  return unit;
}

namespace {

constexpr std::array kForms{
    Form{"pprof", true, false, to_pprof},
    Form{"speedscope", false, true, to_speedscope},
    Form{"firefox", false, true, to_firefox},
};

}  // namespace

std::span<const Form> forms() { return kForms; }

}  // namespace pe::fold::exports
