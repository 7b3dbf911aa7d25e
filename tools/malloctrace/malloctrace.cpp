// SPDX-License-Identifier: MIT
#include "malloctrace/malloctrace.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "malloctrace/attached.h"
#include "malloctrace/heap/layout.h"
#include "malloctrace/heap_stream.h"
#include "malloctrace/options.h"
#include "malloctrace/processes.h"
#include "malloctrace/snapshots.h"
#include "recording/child.h"
#include "recording/inprocess/command.h"
#include "recording/parts.h"
#include "recording/session.h"

namespace pe::malloctrace {
namespace {

/// Checks the limit that the command would inherit.
void check_address_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < heap::kFileBytes)
    throw Error(fmt::format(
        "the address space is limited to {} KiB (ulimit -v), but tracing needs 24 GiB of it",
        limit.rlim_cur / 1024));
}

}  // namespace

void check_is_not_output(const std::string& program, const std::string& output) {
  struct stat of_program = {};
  struct stat of_output = {};
  if (::stat(program.c_str(), &of_program) == 0 && ::stat(output.c_str(), &of_output) == 0 &&
      of_program.st_dev == of_output.st_dev && of_program.st_ino == of_output.st_ino)
    throw UsageError("--output: '" + output + "' is the program itself");
}

void check_can_be_traced(const std::string& path) {
  check_address_limit();
  inprocess::check_takes_library(path);
}

std::vector<std::string> tracing_environment(const Options& options, const std::string& library,
                                             const inprocess::Listener& listener) {
  return {inprocess::preload_variable(library),
          fmt::format("MALLOCTRACE=socket={},key={},{}", listener.socket_name(), listener.key(),
                      settings_text(options))};
}

std::string settings_text(const Options& options) {
  return fmt::format("sample={},depth={},follow={},mmap={}", options.sample_bytes,
                     options.max_depth, options.follow ? 1 : 0, options.with_mmap ? 1 : 0);
}

bool Interrupts::goes_on_after(const StopSignal& signal, std::uint64_t now_ns) {
  if (signal.number != SIGINT)
    return false;
  // For example, timeout(1) sends the same signal twice: to us and to our group.
  constexpr std::uint64_t kSameSignalNs = 500'000'000;
  if (first_ns_ != 0)
    return now_ns - first_ns_ < kSameSignalNs;
  first_ns_ = now_ns;
  const bool has_got_it = signal.is_from_terminal && ::getpgid(command_.pid()) == ::getpgrp();
  // The command is not reaped, so its process id is still valid.
  if (!has_got_it && !command_.poll_status())
    ::kill(command_.pid(), SIGINT);
  return true;
}

bool Interrupts::is_time_to_tell(std::uint64_t now_ns) {
  constexpr std::uint64_t kPatienceNs = kNsPerSecond;
  return first_ns_ != 0 && now_ns - first_ns_ >= kPatienceNs && !std::exchange(was_told_, true);
}

}  // namespace pe::malloctrace

namespace pe {
namespace {

using malloctrace::HeapOfProcess;
using malloctrace::Options;
using malloctrace::Processes;
using recording::Ended;

/// The heaps of the traced processes, for a session.  The members are in the order in which they
/// are set up.
class HeapSource final : public recording::Source {
 public:
  /// Starts the session's command and opens its output.  Throws Error.
  HeapSource(const Options& options, recording::Session& session);

  void start() override;
  [[nodiscard]] std::vector<int> fds() const override { return {processes_.fd(), snapshots_.fd()}; }
  std::optional<std::uint64_t> pass() override;
  [[nodiscard]] std::string progress() const override;
  void stop() override {}  // the processes go on; what they have allocated is read in the end
  Closing finish(Ended ended) override;
  /// A program that allocates nothing is no failure.
  [[nodiscard]] std::optional<std::string> why_empty() override { return std::nullopt; }

 private:
  [[nodiscard]] malloctrace::Summary summary() const;
  [[nodiscard]] std::string describe_tracing(const malloctrace::Summary& all) const;
  [[nodiscard]] Closing closing(const malloctrace::Summary& all, Ended ended) const;
  void describe_attached(const malloctrace::Summary& all, Closing& closing) const;

  const Options& options_;
  recording::Session& session_;
  Processes processes_;
  malloctrace::Snapshots snapshots_;
  std::optional<malloctrace::Sink> sink_;
  std::optional<malloctrace::Interrupts> interrupts_;
  std::optional<malloctrace::Attached> attached_;
  std::string why_not_left_;  ///< as it was: the process that we have attached to
  std::uint64_t began_ns_ = 0, tick_ = 0;
};

Child start_traced(const Options& options, const Processes& processes, const SignalState& signals) {
  const std::string program = inprocess::find_program(options.command.front());
  if (options.writes_file())
    malloctrace::check_is_not_output(program, options.output);
  malloctrace::check_can_be_traced(program);
  const std::string library = inprocess::find_library("libmalloctrace_preload.so");
  return Child::start(options.command, options.writes_file() ? -1 : STDERR_FILENO, signals,
                      malloctrace::tracing_environment(options, library, processes.listener()));
}

HeapSource::HeapSource(const Options& options, recording::Session& session)
    : options_(options),
      session_(session),
      processes_([this](const HeapOfProcess& process) { sink_->add(process, monotonic_ns()); }),
      snapshots_(options, processes_, [&session](const std::string& what) { session.say(what); }) {
  if (!options.command.empty())
    session.adopt_child(start_traced(options, processes_, session.signals_before()));
  session.watch_targets();
  if (options.command.empty()) {
    attached_.emplace(options.target.processes.front(), options, session);
    processes_.take_in(attached_->pid(), attached_->take_memory());
  }
  raise_descriptor_limit();  // the command has its own limit already
  sink_.emplace(options, session.open_plain_output());
  if (options.report)
    session.ignore_reader();
  if (attached_)
    return;
  interrupts_.emplace(*session.child());
  session.ending().bear_signals_by([this](const StopSignal& signal) {
    return interrupts_->goes_on_after(signal, monotonic_ns());
  });
}

void HeapSource::start() {
  if (!options_.follow && !attached_)
    processes_.take_only(session_.child()->pid());
  began_ns_ = monotonic_ns();
  snapshots_.start(began_ns_);
  session_.start_clock(began_ns_);
}

std::optional<std::uint64_t> HeapSource::pass() {
  constexpr std::uint64_t kTickNs = Processes::kTickMs * kNsPerMs;
  processes_.pass();
  const std::uint64_t now_ns = monotonic_ns();
  if (const std::uint64_t now = (now_ns - began_ns_) / kTickNs; now != tick_)
    processes_.tick(static_cast<std::uint32_t>(tick_ = now));
  snapshots_.write_due(now_ns);
  if (attached_) {
    attached_->tend();
    if (attached_->has_another_program())
      session_.ending().end_now();
  }
  if (interrupts_ && interrupts_->is_time_to_tell(now_ns))
    session_.note("waiting for the command to end; another interrupt ends the trace");
  return kTickNs - (monotonic_ns() - began_ns_) % kTickNs;
}

std::string HeapSource::progress() const {
  return fmt::format("{} running, {} ended", processes_.running(), sink_->summary().processes);
}

Closing HeapSource::finish(Ended ended) {
  if (attached_)
    why_not_left_ = attached_->end();
  processes_.leave([this, end_ns = monotonic_ns()](const HeapOfProcess& process) {
    sink_->add(process, end_ns);
  });
  const malloctrace::Summary all = summary();
  sink_->finish(options_.report ? describe_tracing(all) : "");
  if (all.processes == 0 && !attached_)
    session_.say(fmt::format(
        "{}: no process was traced: it is static or set-user-ID, or cleared LD_PRELOAD, "
        "unless a line above gives another reason",
        options_.command.front()));
  return closing(all, ended);
}

/// The end of the report.
std::string HeapSource::describe_tracing(const malloctrace::Summary& all) const {
  std::string text = fmt::format(
      "\nCost of tracing\n\n  {}, including symbolization\n  {}\n  {} walked: {} found, {} known "
      "from the previous walk\n",
      session_.cost().describe(), malloctrace::describe_memory(all), plural(all.walks, "stack"),
      plural(all.frames_walked, "frame"), all.frames_reused);
  if (attached_)
    text += fmt::format("  {}\n  since it has attached{}\n", attached_->describe(),
                        malloctrace::describe_earlier(all, attached_->before_bytes()));
  Closing losses;
  malloctrace::add_losses(all, losses);
  for (const auto* lines : {&losses.doubts, &losses.details})
    for (const std::string& line : *lines)
      text += fmt::format("  {}\n", line);
  return text;
}

malloctrace::Summary HeapSource::summary() const {
  malloctrace::Summary all = sink_->summary();
  all.refused = processes_.refused();
  all.vanished = processes_.vanished();
  all.processes -= std::min(all.processes, processes_.went_on());
  return all;
}

Closing HeapSource::closing(const malloctrace::Summary& all, Ended ended) const {
  Closing closing;
  closing.summary = malloctrace::describe_use(all, session_.cost().describe_length()) + all.holders;
  malloctrace::add_figures(all, closing);
  if (attached_)
    describe_attached(all, closing);
  closing.detail(malloctrace::describe_processes(all));
  closing.detail(session_.cost().describe());
  closing.detail(malloctrace::describe_memory(all));
  malloctrace::add_losses(all, closing);
  malloctrace::add_resident(all, closing);
  if (ended == Ended::kTarget && all.running > 0 && !attached_)
    closing.doubt(plural(all.running, "process") +
                      " still running when the command ended, not counted from then on",
                  "let the command wait for its children");
  return closing;
}

/// What the process had before, and what attaching to it has cost it.
void HeapSource::describe_attached(const malloctrace::Summary& all, Closing& closing) const {
  closing.summary += malloctrace::describe_earlier(all, attached_->before_bytes());
  closing.detail(attached_->describe());
  malloctrace::add_growth(all, attached_->grown_bytes(), closing);
  if (attached_->has_another_program())
    closing.doubt("the process has executed another program, which is not traced",
                  "attach to it again");
  if (!why_not_left_.empty())
    closing.doubt("the library still counts in the process: " + why_not_left_,
                  "it stops within a minute");
}

int record(const Options& options, Io& io) {
  recording::require(recording::Part::kHeap);
  if (!options.writes_file() && !options.report && io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, name a file with --output, or use "
        "--report");
  recording::Session session("malloctrace", options, io);
  HeapSource source(options, session);
  return session.run(source);
}

int work(const CommandLine& line, Io& io) {
  Options options = malloctrace::read_options(line);
  return recording::with_summary(options.summary_fd, io, [&] { return record(options, io); });
}

}  // namespace

const Tool kMalloctrace{
    .name = "malloctrace",
    .synopsis = "[OPTION]... ([--] COMMAND [ARG]... | -p PID)",
    .summary = "Record where a program allocates, what it leaks, and what makes up its peak.",
    .add_options = malloctrace::add_options,
    .work = work,
    .runs_command = true,
};

}  // namespace pe
