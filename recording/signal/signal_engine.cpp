// SPDX-License-Identifier: MIT
#include "recording/signal/signal_engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "recording/abilities.h"
#include "recording/inprocess/command.h"
#include "recording/inprocess/runtime/tick.h"
#include "recording/own_process.h"
#include "recording/refused.h"
#include "recording/request.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

/// Returns the settings that the library will use.
inprocess::Settings settings_for(const Request& request) {
  inprocess::Settings wanted;
  wanted.hz =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(request.frequency_hz, inprocess::kMostHz));
  wanted.clock = request.clock;
  if (request.ring_pages)
    wanted.ring_bytes =
        static_cast<std::uint32_t>(*request.ring_pages * static_cast<std::size_t>(::getpagesize()));
  if (const auto own = stream::own_status())
    wanted.most_filters = own->filters;
  wanted.stack_bytes = request.stack_bytes.value_or(inprocess::kMostCopiedBytes);
  wanted.fit();
  return wanted;
}

/// Returns the request with the stack size of those settings.
Request with_stack_bytes(Request request) {
  request.stack_bytes = settings_for(request).stack_bytes;
  return request;
}

ThreadChoice chosen_threads(const Request& request) {
  ThreadChoice choice;
  for (const std::string& thread : request.thread_choice)
    if (const auto tid = parse_number<std::uint32_t>(thread))
      choice.tids.insert(static_cast<pid_t>(*tid));
    else
      choice.names.insert(thread);
  return choice;
}

/// Returns the library.  Throws if it cannot be loaded into the command.
std::string library_for(const std::vector<std::string>& command) {
  if (const std::string why = why_no_signals(); !why.empty())
    throw Refused("signal: " + why);
  const std::string program = inprocess::find_program(command.front());
  try {
    inprocess::check_takes_library(program);
  } catch (const Error& error) {
    throw Refused(fmt::format("signal: {}", error.what()));
  }
  return inprocess::find_library(inprocess::kSamplerLibrary);
}

/// Returns the largest number of samples per second of one thread.  The kernel checks CPU-time
/// timers only at its ticks.
std::uint64_t most_hz(const inprocess::Settings& settings) {
  const std::uint64_t ticks = kNsPerSecond / inprocess::tick_ns();
  return settings.clock == Clock::kCpu ? std::min<std::uint64_t>(settings.hz, ticks) : settings.hz;
}

std::string quoted_name(const std::string& name) { return in_quotes(name); }

/// Whether competing threads had the CPU at many of the ticks.
bool is_shared(double got, std::uint64_t hz, std::uint64_t ticks) {
  constexpr double kLeast = 0.75;  // of the ticks
  return got < kLeast * static_cast<double>(std::min(hz, ticks));
}

/// Formats "a, b and 3 more", as many as fit into a line.
std::string some_of(const std::vector<std::string>& texts) {
  constexpr std::size_t kShown = 8;
  const std::size_t shown = std::min(texts.size(), kShown);
  const auto text = fmt::format("{}", fmt::join(std::span(texts).first(shown), ", "));
  return shown == texts.size() ? text : fmt::format("{} and {} more", text, texts.size() - shown);
}

}  // namespace

std::string why_fewer_samples(double got, std::uint64_t hz, std::uint64_t ticks) {
  if (is_shared(got, hz, ticks))
    return fmt::format(
        "this kernel checks CPU-time timers {} times per second, and only that of the thread that "
        "is running",
        ticks);
  if (hz > ticks)
    return fmt::format("this kernel checks CPU-time timers {} times per second", ticks);
  return "signals arrived late, so some samples represent several periods";
}

std::string fix_of_fewer_samples(double got, std::uint64_t hz, std::uint64_t ticks) {
  return hz > ticks && !is_shared(got, hz, ticks)
             ? fmt::format("use -F {}, or --engine perf or ptrace", ticks)
             : "use --engine perf or ptrace";
}

SignalEngine::SignalEngine(const Request& request, const std::vector<std::string>& command,
                           Budget& budget)
    : SampleSource(with_stack_bytes(request)),
      settings_(settings_for(request)),
      wants_all_threads_(request.thread_choice.empty()),
      rate_was_given_(request.frequency_was_given),
      library_(library_for(command)),
      collector_(records(), chosen_threads(request), most_hz(settings_)),
      stops_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stops_)
    throw_errno("eventfd", errno);
  records().read_scripts(budget);
}

SignalEngine::~SignalEngine() { stop(); }

std::vector<std::string> SignalEngine::environment() const {
  return {inprocess::preload_variable(library_), settings_text(settings_, collector_.listener())};
}

void SignalEngine::start() {
  ring().complete_until(0);
  records().may_go_back_to(0);
  raise_descriptor_limit();
  thread_ = start_thread([this] {
    try {
      run();
    } catch (...) {
      ring().fail(std::current_exception());
    }
  });
}

void SignalEngine::stop() {
  if (!thread_.joinable())
    return;
  const std::uint64_t one = 1;
  (void)!::write(stops_.get(), &one, sizeof one);  // cannot fail: the count is 0
  thread_.join();
}

void SignalEngine::run() {
  for (;;) {
    std::array<pollfd, 2> polled{{{collector_.fd(), POLLIN, 0}, {stops_.get(), POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), collector_.wait_ms());
    look();
    if ((polled[1].revents & POLLIN) != 0)
      return records().scripts()->describe(scripts_);
  }
}

/// A handler may have read its clock just before the pass that missed its sample.  So records are
/// complete only up to the start of the previous pass.
void SignalEngine::look() {
  const std::uint64_t began_ns = monotonic_ns();
  collector_.pass();
  const std::uint64_t complete_ns = std::exchange(last_look_ns_, began_ns);
  records().may_go_back_to(complete_ns);
  ring().complete_until(complete_ns);
}

std::uint64_t SignalEngine::lost() const {
  return SampleSource::lost() + collector_.counts().lost_samples;
}

std::optional<SampledTime> SignalEngine::sampled_time() const {
  if (settings_.clock != Clock::kCpu || !wants_all_threads_)
    return std::nullopt;
  const CollectorCounts& counts = collector_.counts();
  const std::uint64_t period_ns = settings_.period_ns();
  return SampledTime{
      .clock = {.period_ns = std::max(period_ns, inprocess::tick_ns()),
                .kind = SampledClock::Kind::kOfTicks},
      .ns = counts.sampled_ns + counts.lost_weight * period_ns,
      .programs_without = counts.processes - std::min(counts.processes, counts.sampled_processes)};
}

void SignalEngine::describe(Closing& closing) const {
  closing.add(scripts_);
  const CollectorCounts& counts = collector_.counts();
  if (counts.processes == 0) {
    closing.doubt("no program has loaded the library, so nothing was sampled",
                  "use --engine ptrace");
    return;
  }
  if (counts.processes > 1)
    closing.detail(fmt::format("{} programs and forked processes", counts.processes));
  if (counts.lost_weight > 0)
    closing.detail(fmt::format("the lost samples represent {:.3f} s",
                               static_cast<double>(counts.lost_weight) / settings_.hz));
  describe_rate(closing);
  describe_choice(closing);
  describe_missed(closing);
}

/// Describes the rate, if it differs from the requested one.  That is a doubt only if the user has
/// requested it.
void SignalEngine::describe_rate(Closing& closing) const {
  const CollectorCounts& counts = collector_.counts();
  constexpr double kNoticeable = 1.1;
  const double together = static_cast<double>(counts.weight) /
                          static_cast<double>(std::max<std::uint64_t>(counts.samples, 1));
  if (together <= kNoticeable || settings_.clock != Clock::kCpu)
    return;
  const std::uint64_t ticks = kNsPerSecond / inprocess::tick_ns();
  const double got = settings_.hz / together;
  const std::string text = fmt::format("sampled at {:.0f} Hz instead of {}: {}", got, settings_.hz,
                                       why_fewer_samples(got, settings_.hz, ticks));
  if (rate_was_given_)
    closing.doubt(text, fix_of_fewer_samples(got, settings_.hz, ticks));
  else
    closing.detail(text);
}

void SignalEngine::describe_choice(Closing& closing) const {
  const ThreadChoice& missed = collector_.threads().missed();
  if (missed.is_everything())
    return;
  std::vector<std::string> wanted(missed.names.size());
  std::ranges::transform(missed.names, wanted.begin(), quoted_name);
  for (const pid_t tid : missed.tids)
    wanted.push_back(std::to_string(tid));
  const auto& seen = collector_.threads().seen_names();
  std::vector<std::string> others(seen.size());
  std::ranges::transform(seen, others.begin(), quoted_name);
  closing.doubt(fmt::format("no thread {} was seen", some_of(wanted)),
                others.empty() ? "check --thread" : "choose one of " + some_of(others));
}

void SignalEngine::describe_missed(Closing& closing) const {
  const CollectorCounts& counts = collector_.counts();
  const auto add = [&closing](std::uint64_t count, std::string_view noun, std::string_view what,
                              std::string_view fix) {
    if (count != 0)
      closing.doubt(fmt::format("{} {}", plural(count, noun), what), fix);
  };
  constexpr std::string_view kSignals = "raise ulimit -i", kPtrace = "use --engine ptrace";
  add(counts.by_process_timer, "process", "sampled by ITIMER_PROF, without a timer for each thread",
      kSignals);
  add(counts.threads_without_timer, "thread", "not sampled, because no timer was left", kSignals);
  const bool is_by_rate =
      inprocess::most_threads(settings_.clock, settings_.hz) < inprocess::kMaxThreads;
  add(counts.threads_without_room, "thread",
      is_by_rate ? "too many at once for this rate of --clock wall" : "too many at once",
      is_by_rate ? "lower --freq" : kPtrace);
  add(counts.threads_before_reader, "thread", "not sampled, because threads start and end too fast",
      kPtrace);
  add(counts.threads_without_variables, "thread",
      "started by clone(2) without thread-local storage: not sampled", kPtrace);
  add(counts.threads_that_block, "thread", "not sampled, because SIGPROF is blocked", kPtrace);
  add(counts.threads_without_stack, "time",
      "a thread was not sampled, because its alternate signal stack was too small", kPtrace);
  add(counts.stopped_processes, "time",
      "sampling ended early, because a program uses ITIMER_PROF itself", kPtrace);
  add(counts.stopped_by_filter, "time",
      "sampling ended early, because a seccomp filter forbids returning from signal handlers",
      kPtrace);
  add(counts.stopped_by_stack, "time",
      "sampling ended early, because an alternate signal stack was too small", kSignals);
  add(counts.closed_processes, "program",
      "whose seccomp filter forbids timers: later threads and forks are not sampled", kPtrace);
  add(counts.uncopied_samples, "sample",
      "without their stacks, which the kernel did not copy (seccomp, or protected memory)",
      kPtrace);
  add(counts.other_programs, "program", "started that could not load the library: not sampled",
      kPtrace);
  add(counts.left_out, "program", "with AddressSanitizer started without the library: not sampled",
      "set ASAN_OPTIONS=verify_asan_link_order=0");
  add(counts.damaged, "ring", "with inconsistent numbers",
      "check whether the program overwrites memory");
  for (const auto& [why, count] : collector_.refused())
    add(count, "connection", why + " refused",
        "see COMMANDS THAT SAMPLE THEMSELVES in pe-record(1)");
  if (!collector_.has_taken_all())
    closing.doubt("some processes were not sampled, because no descriptor was left",
                  "raise ulimit -n");
}

}  // namespace pe::recording
