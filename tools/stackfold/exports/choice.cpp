// SPDX-License-Identifier: MIT
#include "stackfold/exports/choice.h"

#include <vector>

#include "stackfold/frame_pattern.h"
#include "stackfold/frame_table.h"
#include "stackfold/frame_text.h"

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

}  // namespace pe::fold::exports
