// SPDX-License-Identifier: MIT
#include "recording/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "base/cli/run.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "recording/own_process.h"
#include "stream/proc/maps.h"
#include "stream/proc/own_rights.h"

namespace pe::recording {
namespace {

/// Returns "'./crash' killed by signal 11 (SIGSEGV)".
std::string signal_text(const std::string& command, int number) {
  const char* const name = ::sigabbrev_np(number);  // null for real-time signals
  return fmt::format("{} killed by signal {}{}", in_quotes(command), number,
                     name == nullptr ? "" : fmt::format(" (SIG{})", name));
}

/// Returns the user of a process.  All that have ended have the same one, which is no user.
std::uint32_t user_of(std::uint32_t pid) {
  constexpr std::uint32_t kNobody = 0xffff'ffff;
  const auto status = stream::status_of(static_cast<pid_t>(pid));
  return status ? status->effective_uid : kNobody;
}

Budget::Limits usual_limits() {
  constexpr std::uint64_t kPart = 4;
  Budget::Limits limits = Budget::kUsual;
  double& kept = limits[static_cast<std::size_t>(Resource::kKeptBytes)].most;
  kept = static_cast<double>(stream::share_of_memory(static_cast<std::uint64_t>(kept), kPart));
  return limits;
}

}  // namespace

Session::Session(const char* tool, const SessionRequest& request, Io& io)
    : tool_(tool),
      request_(request),
      io_(io),
      ending_(signals_, request.duration_ns),
      budget_(usual_limits(), user_of),
      target_(request.target) {}

void Session::start_child(const std::vector<std::string>& environment) {
  if (!request_.command.empty())
    adopt_child(Child::start(request_.command, request_.writes_file() ? -1 : STDERR_FILENO,
                             signals_.before(), environment));
}

void Session::adopt_child(Child child) {
  child_.emplace(std::move(child));
  if (target_.is_command)
    target_.processes = {child_->pid()};
}

void Session::watch_targets() {
  run_before_others();
  watched_.emplace(child_ ? std::vector<pid_t>{} : target_.processes, target_.threads);
  activity_.emplace(target_);
}

Output& Session::open_output() {
  Output& out = open_plain_output();
  out.wait_by([this](int fd) { return ending_.wait_for_room(fd); });
  ending_.on_stall([this] { note(kReaderStalls); });
  return out;
}

Output& Session::open_plain_output() {
  Output& out = open_target();
  reader_fd_ = out.fd();
  return request_.slow_calls.fd < 0 ? out : slow_calls_.emplace(out, request_.slow_calls);
}

Output& Session::open_target() {
  if (request_.keep)
    return kept_.emplace(request_.output, *request_.keep,
                         [this](const std::string& what) { say(what); });
  if (request_.writes_file())
    file_.emplace(request_.output, Named::kAtOnce);
  return file_ ? *file_ : io_.out;
}

int Session::run(Source& source) {
  constexpr std::uint64_t kRestNs = 250'000'000;
  ending_.on_stop([this, &source] {
    budget_.end(kRestNs);
    source.stop();
    cost_.end_wall(monotonic_ns());
    if (!child_ || !child_->poll_status())
      activity_->end();
  });
  // A source that has not started cannot be stopped.  It must only hurry.
  budget_.check_by([this, is_hurried = false]() mutable {
    if (!is_hurried && ending_.has_signal()) {
      is_hurried = true;
      budget_.end(kRestNs);
    }
  });
  source.start();
  if (child_)
    child_->go();
  const Ended ended = watch(source);
  if (ended == Ended::kReaderGone)
    throw BrokenPipe("stdout");
  Closing closing = source.finish(ended);
  if (ending_.was_cut_off())
    closing.doubt(kCutOff, kCutOffFix);
  closing.detail(fmt::format("{}, which was checked for at least every {} ms of CPU",
                             cost_.describe_rest(), ending_.longest_unchecked_ns() / kNsPerMs));
  if (kept_) {
    closing.detail(kept_->describe());
    if (kept_->dropped() > 0)
      closing.doubt(plural(kept_->dropped(), "sample") + " dropped, because the disk was full",
                    "lower --keep-size");
  }
  if (slow_calls_ && slow_calls_->unreported() > 0)
    closing.doubt(plural(slow_calls_->unreported(), "slow call") + " not reported",
                  "read the reports sooner");
  const std::string length = cost_.describe_length();
  closing.figure("seconds", length.substr(0, length.find(' ')));
  report(closing);
  return end(source, ended, closing);
}

void Session::report(const Closing& closing) {
  if (!closing.summary.empty())
    note(closing.summary);
  for (const std::string& doubt : closing.doubts)
    note(doubt);
  if (request_.verbose && !closing.details.empty())
    note(fmt::format("{}", fmt::join(closing.details, "; ")));
}

void Session::start_clock(std::uint64_t now_ns) {
  cost_.begin_wall(now_ns);
  ending_.begin_at(now_ns);
}

Ended Session::watch(Source& source) {
  budget_.check_by([this] { ending_.look(); });
  Progress progress(io_.err, request_.quiet);
  const std::vector<int> fds = source.fds();
  const WatchRequest request{.ending = ending_,
                             .child = child(),
                             .targets = watched_.value(),
                             .ring_fds = fds,
                             .reader_fd = reader_fd_};
  const Ended ended = recording::watch(request, [&] {
    const auto within_ns = source.pass();
    progress.show([&] { return std::string(tool_) + ": " + source.progress(); });
    return within_ns;
  });
  progress.clear();
  return ended;
}

int Session::end(Source& source, Ended ended, const Closing& closing) {
  const auto sum_up = [&](std::string_view result, std::string_view text) {
    io_.out.flush();  // a full disk must not look like success
    write_summary(request_.summary_fd, io_,
                  {.result = result, .text = io_.line_of(text), .figures = closing.figures});
  };
  if (ended == Ended::kDuration && child_ && !child_->poll_status())
    note(fmt::format("stopped the command after {:g} s (-d): sent SIGTERM",
                     static_cast<double>(request_.duration_ns.value_or(0)) / kNsPerSecond));
  const int status = end_status(child(), ended, [this](const std::string& what) { say(what); });
  // The user who types Ctrl-C knows this.  After the recording we end the command ourselves.
  if (ended == Ended::kTarget && child_ && child_->ended_by() != 0 && child_->ended_by() != SIGINT)
    note(signal_text(request_.command.front(), child_->ended_by()));
  if (ending_.was_cut_off()) {
    sum_up("incomplete", closing.summary);
    return cut_off_status(child());
  }
  const auto why_empty = source.why_empty();
  if (why_empty)
    say(*why_empty);
  sum_up(why_empty ? "empty" : "recorded", why_empty.value_or(closing.summary));
  return why_empty ? empty_status(child(), status) : status;
}

void Session::say(const std::string& what) { io_.report(what); }

void Session::note(const std::string& what) {
  if (!request_.quiet)
    say(what);
}

void read_output(const CommandLine& line, SessionRequest& request) {
  if (const auto* path = line.text("output"))
    request.output = *path;
  request.quiet = line.has("quiet");
  request.verbose = line.has("verbose");
  if (request.quiet && request.verbose)
    throw UsageError("--quiet, --verbose: cannot be combined");
  request.summary_fd = read_summary_fd(line);
  if (request.summary_fd == STDOUT_FILENO && !request.writes_file())
    throw UsageError("--summary: 1 is the descriptor of the stream");
}

void check_output(const SessionRequest& request, const Io& io) {
  if (!request.writes_file() && io.out.is_terminal())
    throw UsageError(
        "the stream is binary: pipe it into pe-symbolize, or name a file with --output");
}

std::string summarize(Closing& closing, const Totals& totals, const OwnCost& cost) {
  const std::string share = unwind::describe_share(totals.stacks);
  const std::string percent = cost.percent();
  closing.figure(totals.name, totals.count);
  closing.figure("lost", totals.lost);
  closing.figure("complete_percent", share.substr(0, share.find(' ')));
  closing.figure("recorder_percent", percent);
  return fmt::format("{} in {}{}, {} lost{}{}{}", plural(totals.count, totals.noun),
                     cost.describe_length(), totals.more, totals.lost, share.empty() ? "" : ", ",
                     share,
                     percent.empty() ? "" : fmt::format(", recorder: {} % of a CPU", percent));
}

void add_stacks(Closing& closing, const unwind::StackCounts& counts, const StackFixes& fixes) {
  // Some threads always start or end within functions that no table describes.
  constexpr std::uint64_t kUsualPercent = 5;
  const std::uint64_t incomplete = counts.stacks - counts.complete;
  if (incomplete * 100 > counts.stacks * kUsualPercent) {
    const std::string end = unwind::most_common_end(counts);
    closing.doubt(
        fmt::format("{:.1f} % of stacks are incomplete{}{}",
                    100 * static_cast<double>(incomplete) / static_cast<double>(counts.stacks),
                    end.empty() ? "" : "; most ", end),
        "see HOW STACKS END in pe-record(1)");
  }
  if (counts.cut * 100 > counts.stacks)
    closing.doubt(
        fmt::format("{} cut at {} KiB", plural(counts.cut, "stack"), unwind::cut_kib(counts)),
        fixes.if_cut);
  if (!counts.unopened.empty()) {
    std::uint64_t unopened = 0;
    for (const auto& [module, count] : counts.unopened)
      unopened += count;
    closing.doubt(
        fmt::format("{} ended where a file could not be opened", plural(unopened, "stack")),
        "raise ulimit -n");
  }
  if (counts.foreign > 0)
    closing.doubt(plural(counts.foreign, "stack") + " of 32-bit programs not walked",
                  fixes.if_foreign);
  closing.detail(unwind::describe_rest(counts));
}

}  // namespace pe::recording
