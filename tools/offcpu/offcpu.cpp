// SPDX-License-Identifier: MIT
#include "offcpu/offcpu.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "offcpu/engine.h"
#include "offcpu/options.h"
#include "recording/inprocess/command.h"
#include "recording/probes/function_exits.h"
#include "recording/session.h"
#include "recording/target_options.h"

namespace pe {
namespace {

using offcpu::Engine;
using offcpu::Options;

/// The waits that an engine finds, for a session.
class WaitSource final : public recording::Source {
 public:
  /// Starts the session's command and opens its output.  Throws Error.
  WaitSource(const Options& options, recording::Session& session);

  void start() override;
  [[nodiscard]] std::vector<int> fds() const override { return engine_->fds(); }
  std::optional<std::uint64_t> pass() override { return engine_->pass(); }
  [[nodiscard]] std::string progress() const override {
    return plural(engine_->counts().waits, noun());
  }
  void stop() override { engine_->stop(); }
  Closing finish(recording::Ended ended) override;
  [[nodiscard]] std::optional<std::string> why_empty() override;

 private:
  /// With --held, only names of functions show which releases are of mutexes: stackfold knows them.
  [[nodiscard]] std::string_view noun() const {
    return options_.choice.with_held ? "futex release" : "wait";
  }
  [[nodiscard]] Closing closing() const;

  const Options& options_;
  recording::Session& session_;
  std::unique_ptr<Engine> engine_;
  Output* out_ = nullptr;
};

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
    for (const auto& program : inprocess::programs_of_command(options_.command.front()))
      engine_->expect(program);
  engine_->begin(*out_);
  session_.start_clock(monotonic_ns());
  engine_->write_running_state();
}

Closing WaitSource::finish(recording::Ended /*ended*/) {
  engine_->finish();
  if (const std::string problem = engine_->problem(); !problem.empty())
    session_.say(problem);
  return closing();
}

std::optional<std::string> WaitSource::why_empty() {
  if (engine_->counts().waits > 0)
    return std::nullopt;
  return recording::why_no_waits(
      session_.activity(), {.request = options_.request,
                            .program = session_.child() != nullptr ? options_.command.front() : "",
                            .lost = engine_->lost(),
                            .fix_of_losses = engine_->fix_of_losses()});
}

Closing WaitSource::closing() const {
  const offcpu::WaitCounts& counts = engine_->counts();
  const unwind::StackCounts stacks = engine_->stacks();
  constexpr double kNanosecond = 1e-9;
  Closing closing;
  const bool is_held = options_.choice.with_held;
  // The time between a wait and a release is a time of holding only if the futex is a mutex.
  const std::string seconds =
      is_held ? "" : fmt::format("{:.3f}", static_cast<double>(counts.total_ns) * kNanosecond);
  const std::string summary =
      recording::summarize(closing,
                           {.noun = noun(),
                            .name = is_held ? "releases" : "waits",
                            .count = counts.waits,
                            .lost = engine_->lost(),
                            .stacks = stacks,
                            .more = is_held ? "" : fmt::format(", {} s waited", seconds)},
                           session_.cost());
  closing.figure("waited_seconds", seconds);
  closing.figure("threads", engine_->threads());
  if (counts.waits > 0)
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

int record(Options& options, Io& io) {
  recording::tidy(options.target);
  recording::check_output(options, io);
  options.request.spans = recorder::resolve_spans(options.spans, options.target, options.command);
  recording::Session session("offcpu", options, io);
  WaitSource source(options, session);
  return session.run(source);
}

int work(const CommandLine& line, Io& io) {
  Options options = offcpu::read_options(line);
  return recording::with_summary(options.summary_fd, io, [&] { return record(options, io); });
}

}  // namespace

const Tool kOffcpu{
    .name = "offcpu",
    .synopsis = "[OPTION]... [-p PID | -t TID | -a | --cgroup PATH] [[--] COMMAND...]",
    .summary = "Record where threads wait, and for how long, into a sample stream.",
    .add_options = offcpu::add_options,
    .work = work,
    .runs_command = true,
};

}  // namespace pe
