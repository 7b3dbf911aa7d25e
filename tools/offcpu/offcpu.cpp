// SPDX-License-Identifier: MIT
#include "offcpu/offcpu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/cli/child.h"
#include "base/cli/progress.h"
#include "base/cli/stop_signals.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
#include "base/quote.h"
#include "offcpu/engine.h"
#include "offcpu/options.h"
#include "record/ending.h"
#include "record/own_cost.h"
#include "record/target_activity.h"
#include "record/target_options.h"
#include "record/watch.h"

namespace pe {
namespace {

using offcpu::Engine;
using offcpu::Options;
using record::Ended;

void say(Io& io, const std::string& what) {
  io.err.write("offcpu: " + printable(what) + "\n");
  io.err.flush();
}

bool writes_file(const Options& options) {
  return !options.output.empty() && options.output != "-";
}

/// What takes part in a recording, in the order in which it is set up.
class Recording {
 public:
  Recording(Options& options, Io& io);

  /// Until something ends it; returns the status.
  int run();

 private:
  void note(const std::string& what);
  Ended watch();
  void finish();
  int end(Ended ended);
  [[nodiscard]] std::string closing_line() const;
  [[nodiscard]] Child* child() { return child_ ? &*child_ : nullptr; }

  const Options& options_;
  Io& io_;
  StopSignals signals_;
  record::Ending ending_;
  std::optional<Child> child_;
  record::Target target_;
  std::optional<record::TargetWatch> watched_;
  std::optional<record::TargetActivity> activity_;
  record::OwnCost cost_;
  std::unique_ptr<Engine> engine_;
  std::optional<FileOutput> file_;
  Output* out_ = nullptr;
};

Recording::Recording(Options& options, Io& io)
    : options_(options), io_(io), ending_(signals_, options.duration_ns), target_(options.target) {
  if (!options.command.empty())
    child_.emplace(Child::start(options.command, writes_file(options) ? -1 : STDERR_FILENO,
                                signals_.before()));
  if (target_.is_command)
    target_.processes = {child_->pid()};
  watched_.emplace(child_ ? std::vector<pid_t>{} : target_.processes, target_.threads);
  activity_.emplace(target_);
  engine_ = make_engine(options, target_, [this](const std::string& what) { note(what); });
  // Only now: a recording that cannot be made must not cost an older one its file.
  if (writes_file(options))
    file_.emplace(options.output, Named::kAtOnce);
  out_ = file_ ? &*file_ : &io.out;
  out_->wait_by([this](int fd) { return ending_.wait_for_room(fd); });
  ending_.on_stop([this] {
    engine_->stop();
    cost_.end_wall();
  });
  ending_.on_stall([this] { note(record::kReaderStalls); });
}

void Recording::note(const std::string& what) {
  if (!options_.quiet)
    say(io_, what);
}

int Recording::run() {
  for (const std::string& what : engine_->notes())
    note(what);
  engine_->begin(*out_);
  cost_.begin_wall();
  ending_.begin_at(monotonic_ns());
  engine_->tell_running();
  if (child_)
    child_->go();
  const Ended ended = watch();
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  finish();
  return end(ended);
}

int Recording::end(Ended ended) {
  const int status =
      record::end_status(child(), ended, [this](const std::string& what) { say(io_, what); });
  if (ending_.was_cut_off())
    return record::cut_off_status(child());
  if (engine_->counts().waits > 0)
    return status;
  say(io_, why_no_waits(*activity_, {.request = options_.request,
                                     .program = child_ ? options_.command.front() : "",
                                     .lost = engine_->lost()}));
  return record::empty_status(child(), status);
}

Ended Recording::watch() {
  Progress progress(io_.err, options_.quiet);
  const record::WatchRequest request{.ending = ending_,
                                     .child = child(),
                                     .targets = *watched_,
                                     .ring_fds = engine_->fds(),
                                     .reader_fd = out_->fd()};
  const Ended ended = record::watch(request, [&] {
    const auto urgency_ns = engine_->pass();
    progress.show([&] { return "offcpu: " + plural(engine_->counts().waits, "wait"); });
    return urgency_ns;
  });
  progress.clear();
  return ended;
}

void Recording::finish() {
  engine_->finish();
  const std::string closing = closing_line();
  if (const std::string problem = engine_->problem(); !problem.empty())
    say(io_, problem);
  note(closing);
}

std::string Recording::closing_line() const {
  const offcpu::WaitCounts& counts = engine_->counts();
  constexpr double kNanosecond = 1e-9;
  std::string line =
      fmt::format("{}, {:.3f} s in all, {} lost, {} seen; {}", plural(counts.waits, "wait"),
                  static_cast<double>(counts.total_ns) * kNanosecond, engine_->lost(),
                  plural(engine_->threads(), "thread"), cost_.describe());
  const auto add = [&line](std::uint64_t count, std::string_view what) {
    if (count > 0)
      line += fmt::format("; {} {}", count, what);
  };
  add(counts.unfinished, "still waiting");
  add(counts.began_before, "that had begun before left out");
  add(counts.stackless, "without a stack");
  add(counts.stateless, "left out whose state was lost");
  add(counts.dropped, "dropped where records were lost");
  return line + engine_->remarks() + (ending_.was_cut_off() ? record::kCutOff : "");
}

int work(const CommandLine& line, Io& io) {
  Options options = offcpu::read_options(line);
  record::tidy(options.target);
  if (!writes_file(options) && io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, or name a file with --output");
  return Recording(options, io).run();
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

int offcpu_main(std::span<const std::string> args, Io& io) { return run(kOffcpu, args, io); }

}  // namespace pe
