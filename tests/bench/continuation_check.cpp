// Measures how many stacks are wrong of those whose copy was cut off and that were continued.
//
//   continuation_check [-v] KIB STREAM           reads a stream of pe-record --keep-stacks
//   continuation_check [-v] KIB -- COMMAND...    records the command itself, at 997 Hz
//
// A sample whose stack is complete within its whole copy of 64 KiB is the truth.  The program cuts
// this copy to KIB, continues the stack as pe-record would, and compares.  It continues first from
// the thread's earlier stacks.  If it records a command, it then continues from the process's
// memory, which it reads when the sample comes out of the ring.  A stack is wrong if any frame
// differs.  -v reports each wrong stack, and each that ended neither at its root nor at the end of
// its copy.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "recording/child.h"
#include "recording/counters/counters.h"
#include "recording/ending.h"
#include "recording/stream/drain.h"
#include "recording/stream/mapped_bytes.h"
#include "recording/stream/synthesize.h"
#include "stream/ordered_reader.h"
#include "stream/session.h"
#include "unwind/stacks/sample_unwinder.h"

namespace {

using namespace pe;

/// The stacks that were continued in one way.
struct Way {
  std::uint64_t continued = 0;
  std::uint64_t wrong = 0;
  std::uint64_t wrong_frames = 0;  ///< the frames that differ in the wrong stacks

  void add(std::size_t different_frames) {
    ++continued;
    wrong += different_frames > 0 ? 1 : 0;
    wrong_frames += different_frames;
  }
};

using Frames = std::vector<std::uint64_t>;

/// Copies the user frames of a call chain, leaf first, without the marks.
void take_frames(std::span<const std::uint64_t> chain, Frames& frames) {
  frames.clear();
  const auto user = std::find(chain.begin(), chain.end(), PERF_CONTEXT_USER);
  std::copy_if(user, chain.end(), std::back_inserter(frames),
               [](std::uint64_t entry) { return entry < PERF_CONTEXT_MAX; });
}

struct Difference {
  std::size_t inner = 0, outer = 0;  ///< the equal frames at each end
  std::size_t frames = 0;            ///< the frames between them, in the longer stack
};

Difference compare(const Frames& truth, const Frames& checked) {
  Difference result;
  const std::size_t shorter = std::min(truth.size(), checked.size());
  const auto differs =
      std::mismatch(truth.begin(), truth.begin() + static_cast<long>(shorter), checked.begin());
  result.inner = static_cast<std::size_t>(differs.first - truth.begin());
  const auto from_root = std::mismatch(
      truth.rbegin(), truth.rbegin() + static_cast<long>(shorter - result.inner), checked.rbegin());
  result.outer = static_cast<std::size_t>(from_root.first - truth.rbegin());
  result.frames = std::max(truth.size(), checked.size()) - result.inner - result.outer;
  return result;
}

class Check {
 public:
  /// `history` must outlive this.
  Check(const stream::History& history, std::size_t cut_bytes, bool is_verbose,
        const unwind::UnwindOptions& options = {})
      : cut_bytes_(cut_bytes),
        is_verbose_(is_verbose),
        truth_(history, {.may_continue = false}),
        checked_(history, options) {}

  /// Call this after each record of the history.
  void follow() {
    truth_.follow();
    checked_.follow();
  }

  /// The sample with a copy of at most cut_bytes_.
  [[nodiscard]] stream::Sample cut(stream::Sample sample) const {
    sample.user_stack = sample.user_stack.first(std::min(sample.user_stack.size(), cut_bytes_));
    sample.user_stack_limit = cut_bytes_;
    return sample;
  }
  /// The unwinder of cut samples.
  [[nodiscard]] unwind::SampleUnwinder& checked() noexcept { return checked_; }

  void see(const stream::Sample& sample, const perf_event_attr& attr, const unwind::Behind& behind);
  void print() const;

 private:
  void compare_continued(const stream::Sample& sample, bool is_from_memory);

  std::size_t cut_bytes_;
  bool is_verbose_;
  unwind::SampleUnwinder truth_, checked_;
  Frames truth_frames_, checked_frames_;
  std::uint64_t samples_ = 0;   ///< samples whose truth is known
  std::uint64_t unknown_ = 0;   ///< the other samples
  std::uint64_t complete_ = 0;  ///< of samples_, those with a complete stack, continued or not
  Way earlier_, memory_;
};

void Check::see(const stream::Sample& sample, const perf_event_attr& attr,
                const unwind::Behind& behind) {
  const std::uint64_t whole_before = truth_.counts().complete;
  take_frames(truth_.call_chain(sample, attr), truth_frames_);
  const bool is_truth = truth_.counts().complete > whole_before;
  const unwind::StackCounts& counts = checked_.counts();
  const std::uint64_t complete = counts.complete, cut_ones = counts.cut,
                      earlier = counts.from_earlier, memory = counts.from_process;
  take_frames(checked_.call_chain(cut(sample), attr, behind), checked_frames_);
  if (is_verbose_ && counts.complete == complete && counts.cut == cut_ones)
    fmt::print("{} ns: {} frames, truth{} {}, then neither root nor cut\n", sample.time_ns,
               checked_frames_.size(), is_truth ? "" : " at least", truth_frames_.size());
  if (!is_truth) {
    ++unknown_;
    return;
  }
  ++samples_;
  complete_ += counts.complete - complete;
  if (counts.from_earlier > earlier || counts.from_process > memory)
    compare_continued(sample, counts.from_process > memory);
}

void Check::compare_continued(const stream::Sample& sample, bool is_from_memory) {
  const Difference found = compare(truth_frames_, checked_frames_);
  (is_from_memory ? memory_ : earlier_).add(found.frames);
  if (found.frames == 0 || !is_verbose_)
    return;
  fmt::print("{} ns, {}: {} frames, truth {}; the inner {} and outer {} are equal\n",
             sample.time_ns, is_from_memory ? "memory" : "earlier stack", checked_frames_.size(),
             truth_frames_.size(), found.inner, found.outer);
  for (std::size_t i = found.inner - std::min<std::size_t>(found.inner, 2);
       i < found.inner + std::min<std::size_t>(found.frames, 6); ++i)
    fmt::print("  {:3} {:#x} {:#x}\n", i, i < truth_frames_.size() ? truth_frames_[i] : 0,
               i < checked_frames_.size() ? checked_frames_[i] : 0);
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void Check::print() const {
  fmt::print("{} samples with known stacks, cut to {} KiB ({} without, left out)\n", samples_,
             cut_bytes_ / 1024, unknown_);
  fmt::print("  {:<32} {:>9} {:>9} {:>7} {:>9} {:>22}\n", "", "stacks", "of all", "wrong",
             "of them", "frames off in a wrong one");
  const std::uint64_t continued = earlier_.continued + memory_.continued;
  fmt::print("  {:<32} {:>9} {:>7.2f} %\n", "complete in the cut copy", complete_ - continued,
             percent(complete_ - continued, samples_));
  const auto row = [&](const char* name, const Way& way) {
    fmt::print("  {:<32} {:>9} {:>7.2f} % {:>7} {:>7.2f} % {:>22.1f}\n", name, way.continued,
               percent(way.continued, samples_), way.wrong, percent(way.wrong, way.continued),
               way.wrong == 0
                   ? 0.0
                   : static_cast<double>(way.wrong_frames) / static_cast<double>(way.wrong));
  };
  row("continued from an earlier stack", earlier_);
  row("continued from memory", memory_);
  row("continued",
      {continued, earlier_.wrong + memory_.wrong, earlier_.wrong_frames + memory_.wrong_frames});
  fmt::print("  {:<32} {:>9} {:>7.2f} %\n", "complete", complete_, percent(complete_, samples_));
}

void check_stream(const std::string& path, std::size_t cut_bytes, bool is_verbose) {
  Input input = Input::open(path, STDIN_FILENO);
  stream::Session session(input);
  Check check(session.history(), cut_bytes, is_verbose);
  while (session.next()) {
    check.follow();
    if (session.sample() && session.sample()->has_user_copy())
      check.see(*session.sample(), session.event()->attr, {});
  }
  check.print();
}

/// Does what the recorder does between the rings and the unwinder (recording/stream/drain.h),
/// without a stream.
class LiveCheck {
 public:
  LiveCheck(const perf_event_attr& attr, std::size_t cut_bytes, bool is_verbose)
      : attr_(attr),
        pace_(attr),
        check_(history_, cut_bytes, is_verbose,
               {.stack_at = [this](auto pid, auto avma) { return mapped_.at(pid, avma); }}) {}

  /// Reads the rings, and checks the samples from before `until_ns`.
  void pass(std::vector<stream::Ring>& rings, std::uint64_t until_ns) {
    for (stream::Ring& ring : rings)
      ring.drain([this](const stream::Record& record) { hold(record); });
    held_.make_ready(until_ns);
    while (const auto next = held_.next())
      see(next->record);
  }
  [[nodiscard]] std::optional<std::uint64_t> wait_ns() const {
    return pace_.wait_ns(monotonic_ns());
  }
  [[nodiscard]] const Check& check() const noexcept { return check_; }

 private:
  void hold(const stream::Record& record) {
    const auto sample = record.is_sample() ? stream::parse_sample(record, attr_) : std::nullopt;
    if (sample && sample->has_user_copy()) {
      const stream::Sample cut = check_.cut(*sample);
      if (const auto behind = memory_.read(cut, attr_, check_.checked()); !behind.bytes.empty())
        recording::make_behind_records(behind, sample->time_ns,
                                       [&](auto pieces) { held_.hold(sample->time_ns, pieces); });
      pace_.see(cut, check_.checked().used_of_copy(cut, attr_));
    }
    held_.hold(stream::time_of(record, attr_), {record.bytes});
  }

  void see(const stream::Record& record) {
    if (behind_.take(record))
      return;
    history_.apply(record);
    check_.follow();
    const auto sample = record.is_sample() ? stream::parse_sample(record, attr_) : std::nullopt;
    if (!sample || !sample->has_user_copy())
      return;
    check_.see(*sample, attr_, behind_.view());
    behind_.forget();
  }

  perf_event_attr attr_;
  stream::History history_;
  stream::HeldRecords held_;
  recording::DeepPace pace_;
  Budget budget_;
  recording::MemoryBehind memory_{budget_};
  recording::MappedRanges mapped_;
  Check check_;
  recording::KeptBehind behind_;
};

void check_command(const std::vector<std::string>& command, std::size_t cut_bytes,
                   bool is_verbose) {
  recording::Request wanted;
  constexpr std::uint64_t kHz = 997;
  wanted.frequency_hz = kHz;
  StopSignals signals;
  Child child = Child::start(command, STDERR_FILENO, signals.before());
  const recording::Target target{.processes = {child.pid()}, .is_command = true};
  recording::Counters counters(wanted, target);
  LiveCheck live(counters.events().front().attr, cut_bytes, is_verbose);
  recording::TargetWatch targets({}, {});
  counters.start();
  child.go();
  std::uint64_t last_pass_ns = 0;
  recording::Ending ending(signals, std::nullopt);
  const recording::WatchRequest request{.ending = ending,
                                        .child = &child,
                                        .targets = targets,
                                        .ring_fds = counters.ring_fds(),
                                        .reader_fd = -1};
  recording::watch(request, [&] {
    const std::uint64_t now_ns = monotonic_ns();
    live.pass(counters.rings(), last_pass_ns);
    last_pass_ns = now_ns;
    return live.wait_ns();
  });
  counters.stop();
  live.pass(counters.rings(), ~std::uint64_t{0});
  live.check().print();
}

int usage() {
  fmt::print(stderr, "Usage: continuation_check [-v] KIB STREAM | [-v] KIB -- COMMAND...\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  const bool is_verbose = !args.empty() && args.front() == "-v";
  if (is_verbose)
    args.erase(args.begin());
  const auto kib = args.empty() ? std::nullopt : parse_number<std::uint8_t>(args[0]);
  const bool is_command = args.size() > 2 && args[1] == "--";
  if (!kib || *kib == 0 || (args.size() != 2 && !is_command))
    return usage();
  constexpr std::size_t kKibibyte = 1024;
  try {
    if (is_command)
      check_command({args.begin() + 2, args.end()}, *kib * kKibibyte, is_verbose);
    else
      check_stream(args[1], *kib * kKibibyte, is_verbose);
  } catch (const Error& error) {
    fmt::print(stderr, "continuation_check: {}\n", error.what());
    return 1;
  }
  return 0;
}
