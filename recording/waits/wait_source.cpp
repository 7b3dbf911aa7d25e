// SPDX-License-Identifier: MIT
#include "recording/waits/wait_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "recording/inprocess/command.h"
#include "unwind/stacks/stack_counts.h"

namespace pe::waits {

std::string_view describe_no_waits(const WaitChoice& choice) {
  const WaitChoice all;
  if (choice.min_ns != all.min_ns || choice.max_ns != all.max_ns || !choice.states.empty())
    return "had no wait that --state, --min-us and --max-us select";
  if (choice.with_locks)
    return "waited for no lock";
  return choice.with_preempted ? "did not wait"
                               : "did not wait, except perhaps for a CPU (--preempted)";
}

namespace {

constexpr double kSecondsPerNs = 1e-9;

}  // namespace

WaitSource::WaitSource(const Options& options, recording::Session& session)
    : options_(options), session_(session) {
  session.start_child();
  session.watch_targets();
  engine_ = make_engine(options, session.target(), session.budget(),
                        [&session](const std::string& what) { session.note(what); });
  out_ = &session.open_output();
  for (const std::string& what : engine_->notes())
    session.note(what);
}

void WaitSource::start() {
  if (session_.child() != nullptr)
    for (const auto& file : inprocess::programs_of_command(program()))
      engine_->expect(file);
  session_.start_clock(engine_->begin(*out_));
  engine_->write_running_state();
}

Closing WaitSource::finish(recording::Ended /*ended*/) {
  engine_->finish();
  if (const std::string problem = engine_->problem(); !problem.empty())
    session_.say(problem);
  return closing();
}

std::optional<std::string> WaitSource::why_empty() {
  if (engine_->counts().waits + engine_->counts().samples > 0)
    return std::nullopt;
  return recording::why_no_waits(session_.activity(),
                                 {.request = options_.request,
                                  .program = program(),
                                  .lost = engine_->lost(),
                                  .fix_of_losses = engine_->fix_of_losses()},
                                 describe_no_waits(options_.choice));
}

namespace {

/// Returns the largest parts of the waits: " (2.120 s for locks, 1.000 s asleep)".
std::string largest_kinds(const WaitCounts& counts) {
  constexpr std::array<std::string_view, stream::kWaitKinds> kWords = {
      "otherwise", "for a CPU", "for locks", "asleep", "for I/O", "for pages", "for children"};
  constexpr std::size_t kShown = 3;
  constexpr std::uint64_t kLeastShare = 100;  // a hundredth of all
  std::vector<std::pair<std::uint64_t, std::string_view>> parts;
  for (std::size_t i = 0; i < kWords.size(); ++i)
    if (counts.kind_ns.at(i) * kLeastShare >= counts.total_ns && counts.kind_ns.at(i) > 0)
      parts.emplace_back(counts.kind_ns.at(i), kWords.at(i));
  std::ranges::sort(parts, std::greater());
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, parts.size()); ++i)
    text += fmt::format("{}{:.3f} s {}", i > 0 ? ", " : "",
                        static_cast<double>(parts[i].first) * kSecondsPerNs, parts[i].second);
  return text.empty() ? "" : fmt::format(" ({})", text);
}

}  // namespace

Closing WaitSource::closing() const {
  const WaitCounts& counts = engine_->counts();
  const unwind::StackCounts stacks = engine_->stacks();
  Closing closing;
  const bool is_held = options_.choice.with_held;
  // The time between a wait and a release is a time of holding only if the futex is a mutex.
  const std::string seconds =
      is_held ? "" : fmt::format("{:.3f}", static_cast<double>(counts.total_ns) * kSecondsPerNs);
  const std::string samples = options_.with_cpu ? fmt::format("{}, {}", largest_kinds(counts),
                                                              plural(counts.samples, "CPU sample"))
                                                : "";
  const std::string summary = recording::summarize(
      closing,
      {.noun = noun(),
       .name = is_held ? "releases" : "waits",
       .count = counts.waits,
       .lost = engine_->lost(),
       .stacks = stacks,
       .more = is_held ? "" : fmt::format(", {} s waited{}", seconds, samples)},
      session_.cost());
  if (options_.with_cpu)
    closing.figure("samples", counts.samples);
  closing.figure("waited_seconds", seconds);
  closing.figure("threads", engine_->threads());
  if (counts.waits + counts.samples > 0)
    closing.summary = summary;
  const auto doubt = [&](std::uint64_t count, std::string_view what, std::string_view fix) {
    if (count > 0)
      closing.doubt(plural(count, noun()) + std::string(what), fix);
  };
  const std::string room = engine_->fix_of_losses();
  doubt(counts.stackless, " without a stack", room);
  doubt(counts.stateless, " left out because their state was lost", room);
  doubt(counts.dropped, " dropped where records were lost", room);
  closing.detail(plural(engine_->threads(), "thread") + " seen");
  closing.detail(session_.cost().describe());
  if (counts.unfinished > 0)
    closing.detail(fmt::format("{} still waiting", counts.unfinished));
  if (counts.timeouts + counts.signals > 0)
    closing.detail(fmt::format("{} ended by a timeout, {} by a signal",
                               plural(counts.timeouts, "wait"), counts.signals));
  if (counts.began_before > 0)
    closing.detail(plural(counts.began_before, "wait") + " from before the recording left out");
  recording::add_stacks(
      closing, stacks,
      {.if_cut = engine_->fix_of_cuts(), .if_foreign = "only 64-bit stacks are walked"});
  engine_->describe(closing);
  return closing;
}

std::string WaitSource::progress() const { return plural(engine_->counts().waits, noun()); }

}  // namespace pe::waits
