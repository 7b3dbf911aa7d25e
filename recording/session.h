// One recording session: a command or other targets, a source of records, an end, an output and a
// closing lines.  pe-record, offcpu and malloctrace each supply the source.
//
//     Session session("pe-record", request, io);
//     SomeSource source(session);   starts the child, opens its engine, and only then the output
//     return session.run(source);
//
// An engine that cannot work so costs nothing: no older file is replaced.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/cli/closing.h"
#include "base/cli/run.h"
#include "recording/child.h"
#include "recording/ending.h"
#include "recording/kept/kept_output.h"
#include "recording/kept/slow_calls.h"
#include "recording/own_process.h"
#include "recording/request.h"
#include "recording/summary.h"
#include "recording/target_activity.h"
#include "unwind/stacks/stack_counts.h"

namespace pe::recording {

/// The options that all recorders share.
struct SessionRequest {
  Target target;
  std::vector<std::string> command;          ///< recorded, or the target's time, while it runs
  std::optional<std::uint64_t> duration_ns;  ///< nullopt: until the target ends or Ctrl-C
  std::string output;                        ///< empty or "-": standard output
  bool quiet = false;
  bool verbose = false;                 ///< the closing lines have all details
  int summary_fd = -1;                  ///< see recording/summary.h; -1: no summary
  std::optional<KeepLimits> keep = {};  ///< the output is a folder that keeps only this
  SlowCallRequest slow_calls = {};

  [[nodiscard]] bool writes_file() const { return !output.empty() && output != "-"; }
};

/// Reads --output, --quiet, --verbose and --summary.  Throws UsageError.
void read_output(const CommandLine& line, SessionRequest& request);

/// Supplies a session with records.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  Source(Source&&) = delete;
  Source& operator=(Source&&) = delete;
  virtual ~Source() = default;

  /// Writes the head of the stream and starts recording.  Calls Session::start_clock() when the
  /// time of the recording starts.  A command does not run its program yet.
  virtual void start() = 0;
  /// The descriptors to poll(2) for new records.
  [[nodiscard]] virtual std::vector<int> fds() const = 0;
  /// Writes the new records.  Returns within how many nanoseconds it must be called again, if that
  /// matters.
  virtual std::optional<std::uint64_t> pass() = 0;
  /// "12 samples": shown while the session records.
  [[nodiscard]] virtual std::string progress() const = 0;
  /// Stops recording.  The session calls it once, also while the reader of the stream blocks.
  virtual void stop() = 0;
  /// Writes the rest.  Returns the closing lines.
  virtual Closing finish(Ended ended) = 0;
  /// Why the recording is empty; nullopt if it is not.
  [[nodiscard]] virtual std::optional<std::string> why_empty() = 0;
};

class Session {
 public:
  /// `tool` precedes every message.  All arguments must outlive the session.
  Session(const char* tool, const SessionRequest& request, Io& io);

  /// Forks the command, if there is one, which waits for run(); it becomes the target unless the
  /// request names another.  Throws Error.
  void start_child(const std::vector<std::string>& environment = {});
  /// The same, with a command that the caller has started.
  void adopt_child(Child child);
  /// Starts to watch for the end of the targets, and to measure their CPU time.  From now on the
  /// recorder runs before others, but not its child.
  void watch_targets();
  /// Opens the output late: a recording that fails must not replace an older file.  Throws Error.
  Output& open_output();
  /// The same without waiting for a slow reader.
  Output& open_plain_output();
  /// Nobody reads a stream while the session records.
  void ignore_reader() { reader_fd_ = -1; }

  /// Records until something ends it.  Returns the exit status.  Throws Error, BrokenPipe.
  int run(Source& source);

  /// The recording's time starts (CLOCK_MONOTONIC): the duration, and the recorder's own cost.
  void start_clock(std::uint64_t now_ns);

  /// Prints a line on standard error; note() prints it only without --quiet.
  void say(const std::string& what);
  void note(const std::string& what);

  [[nodiscard]] const SessionRequest& request() const noexcept { return request_; }
  [[nodiscard]] const SignalState& signals_before() const noexcept { return signals_.before(); }
  [[nodiscard]] Child* child() noexcept { return child_ ? &*child_ : nullptr; }
  [[nodiscard]] const Target& target() const noexcept { return target_; }
  [[nodiscard]] const TargetActivity& activity() const { return activity_.value(); }
  [[nodiscard]] const OwnCost& cost() const noexcept { return cost_; }
  [[nodiscard]] Ending& ending() noexcept { return ending_; }
  /// The limits on reading about all targets.  Long work asks it whether the recording must end.
  [[nodiscard]] Budget& budget() noexcept { return budget_; }

 private:
  Ended watch(Source& source);
  Output& open_target();
  void report(const Closing& closing);
  int end(Source& source, Ended ended, const Closing& closing);

  OwnCost cost_;
  const char* tool_;
  const SessionRequest& request_;
  Io& io_;
  StopSignals signals_;
  Ending ending_;
  Budget budget_;
  std::optional<Child> child_;
  Target target_;
  std::optional<TargetWatch> watched_;
  std::optional<TargetActivity> activity_;
  std::optional<FileOutput> file_;
  std::optional<KeptOutput> kept_;
  std::optional<SlowCallOutput> slow_calls_;
  int reader_fd_ = -1;
};

/// Throws UsageError where the stream, which is binary, would go to a terminal.
void check_output(const SessionRequest& request, const Io& io);

// Describes the stacks of a recording in its closing lines.

struct Totals {
  std::string_view noun;      ///< "sample"
  std::string_view name;      ///< of the count, among the figures: "samples"
  std::uint64_t count, lost;  ///< of these
  const unwind::StackCounts& stacks;
  std::string_view more = {};  ///< ", 3.000 s waited"
};
/// Adds these figures, and the cost of the recording.  Returns the summary with them:
/// "120 samples in 1.20 s, 3 lost, 99.9 % of stacks complete, recorder: 1.20 % of a CPU".
std::string summarize(Closing& closing, const Totals& totals, const OwnCost& cost);

/// Adds the details of these stacks, and doubts: many are incomplete, or some were not walked.
struct StackFixes {
  std::string_view if_cut;      ///< for stacks that are deeper than their copies
  std::string_view if_foreign;  ///< for those of 32-bit programs
};
void add_stacks(Closing& closing, const unwind::StackCounts& counts, const StackFixes& fixes);

}  // namespace pe::recording
