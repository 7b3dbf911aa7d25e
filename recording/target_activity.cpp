// SPDX-License-Identifier: MIT
#include "recording/target_activity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>

#include "base/cli/run.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "recording/inprocess/command.h"
#include "recording/inprocess/runtime/tick.h"
#include "recording/thread_state.h"
#include "stream/proc/maps.h"

namespace pe::recording {
namespace {

/// Returns the time since `before_ns`; 0 if the task is gone.
std::uint64_t since(std::optional<std::uint64_t> now_ns, std::uint64_t before_ns) {
  return now_ns ? *now_ns - std::min(*now_ns, before_ns) : 0;
}

/// Formats a duration: "12.3 ms", "1.23 s".
std::string duration_text(std::uint64_t ns) {
  return ns < kNsPerSecond ? fmt::format("{:.3g} ms", static_cast<double>(ns) / kNsPerMs)
                           : fmt::format("{:.2f} s", static_cast<double>(ns) / kNsPerSecond);
}

/// Returns how a program gains other privileges when it is executed; empty if it gains none.  The
/// kernel closes the counters of such a program, and of one that its user may not read
/// (begin_new_exec, fs/exec.c).
std::string other_privileges(const std::string& program) {
  std::string path;
  try {
    path = inprocess::find_program(program);
  } catch (const Error&) {
    return {};
  }
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0)
    return {};
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid())
    return "its set-user-ID bit";
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid())
    return "its set-group-ID bit";
  if (::geteuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
    return "its file capabilities";
  return {};
}

std::string of_children(const TargetActivity::Used& used) {
  if (used.children == 0)
    return {};
  return fmt::format("; its {} ran for {}: use --children or -a",
                     used.children == 1 ? "child" : fmt::format("{} children", used.children),
                     duration_text(used.children_ns));
}

/// Explains an empty recording of a whole machine, or of a part of it.
std::string of_wide(const Target& target) {
  if (!target.cgroup.empty())
    return "no process of the control group ran";
  return target.cpus.empty() ? "all CPUs were idle" : "the chosen CPUs were idle";
}

/// Explains an empty recording of a target that is not known to have run.
std::string of_idle(const TargetActivity::Used& used) {
  return used.has_ended ? "the target ended too soon" : "the target slept all the time";
}

/// Returns the CPU time between two samples of a thread.  Engine signal has them at ticks only.
std::uint64_t time_between(const Wanted& wanted) {
  const bool is_by_tick =
      wanted.request.engine == Engine::kSignal && wanted.request.clock == Clock::kCpu;
  return is_by_tick ? std::max(wanted.period_ns, inprocess::tick_ns()) : wanted.period_ns;
}

/// Explains an empty recording of a command that ran for less than one period; empty if it ran
/// longer, or is no command.
std::string of_brief_command(const TargetActivity& activity, const Wanted& wanted) {
  if (!activity.target().is_command || wanted.period_ns == 0)
    return {};
  const std::uint64_t own_ns = activity.used().own_ns;
  if (own_ns == 0 || own_ns >= time_between(wanted))
    return {};
  const Request& request = wanted.request;
  constexpr std::uint64_t kHigherHz = 4999;
  const bool has_counters = request.engine != Engine::kSignal && request.engine != Engine::kPtrace;
  const std::string fix = request.period  ? "lower --count"
                          : !has_counters ? "let it run longer"
                          : request.frequency_hz < kHigherHz && own_ns * kHigherHz >= kNsPerSecond
                              ? "try -F 4999"
                              : "try -F max";
  return fmt::format("0 samples: the command ran for less than one sampling period ({} of {}); {}",
                     duration_text(own_ns), duration_text(time_between(wanted)), fix);
}

/// Explains an empty recording of a target that ran.
std::string of_running(const TargetActivity::Used& used, const Wanted& wanted) {
  const Request& request = wanted.request;
  const std::string ran = "the target ran for " + duration_text(used.own_ns);
  if (!request.probes.empty())
    return fmt::format("{}, and hit none of the probes ({}): does the target use that file?", ran,
                       fmt::join(request.events, ", "));
  if (wanted.period_ns == 0)
    return fmt::format("{}, with too few events for a sample ({})", ran,
                       fmt::join(request.events, ", "));
  if (!request.thread_choice.empty())
    return ran + ", but not in a thread of --thread";
  const std::uint64_t between_ns = time_between(wanted);
  const std::string more = how_to_sample_more(request, kNsPerSecond / inprocess::tick_ns());
  if (used.own_ns < between_ns)
    return fmt::format("{} in all, less than the {} between two samples: {}", ran,
                       duration_text(between_ns), more);
  if (request.kernel_only)
    return ran + ", not in the kernel (--kernel-only)";
  if (request.engine == Engine::kSignal)
    return fmt::format(
        "{}, but in programs without the library (static, set-user-ID), or each of its threads for "
        "less than the {} between two samples: use --engine ptrace, or {}",
        ran, duration_text(between_ns), more);
  if (request.engine == Engine::kPtrace)
    return ran + ", but no thread was found running: record longer, or use --engine perf or bpf";
  // The cause is not known: these are the usual ones.
  const bool has_modifiers = std::ranges::any_of(
      request.events, [](const std::string& event) { return event.find(':') != event.npos; });
  return fmt::format(
      "{}, but nothing was sampled: perhaps each of its threads ran for less than the {} between "
      "two samples{}: {}, record longer, or use {}",
      ran, duration_text(between_ns),
      request.user_only ? ", or only in the kernel (--user-only)"
      : has_modifiers   ? ", or only where the event does not count"
                        : "",
      more, ::geteuid() == 0 ? "-a" : "--engine ptrace");  // other users may not record everything
}

/// Returns a reason that applies to recordings of samples and of waits; empty if there is none.
/// `without_counters` is a fix that only one of them has.
std::string of_both(const TargetActivity& activity, const Wanted& wanted,
                    std::string_view without_counters) {
  if (wanted.lost > 0)
    return fmt::format(
        "{} lost: {}",
        wanted.lost == 1 ? "the only one was" : fmt::format("all {} were", wanted.lost),
        wanted.fix_of_losses);
  const std::string privileges = wanted.program.empty() ? "" : other_privileges(wanted.program);
  if (!privileges.empty())
    return fmt::format(
        "{} got other privileges from {}, so the kernel closed its counters: as root, run it "
        "directly, or record with -a or --cgroup (CAP_PERFMON){}",
        in_quotes(wanted.program), privileges, without_counters);
  return activity.target().is_wide() ? of_wide(activity.target()) : "";
}

}  // namespace

std::string how_to_sample_more(const Request& request, std::uint64_t ticks) {
  if (request.period)
    return "lower --count";
  const bool has_counters = request.engine != Engine::kSignal && request.engine != Engine::kPtrace;
  const bool is_by_tick = request.engine == Engine::kSignal && request.clock == Clock::kCpu;
  const std::uint64_t most =
      is_by_tick ? std::min(ticks, most_hz_of(request.engine)) : most_hz_of(request.engine);
  return has_counters || request.frequency_hz < most ? "raise --freq" : "record longer";
}

std::uint64_t period_ns_of(const perf_event_attr& attr) {
  const bool is_cycles =  // a CPU makes one or more per nanosecond
      attr.type == PERF_TYPE_HARDWARE && attr.config == PERF_COUNT_HW_CPU_CYCLES;
  if (!stream::is_clock(attr) && !is_cycles)
    return 0;
  return attr.freq != 0 ? kNsPerSecond / std::max<std::uint64_t>(attr.sample_freq, 1)
                        : attr.sample_period;
}

TargetActivity::TargetActivity(Target target)
    : target_(std::move(target)), ended_ns_(ended_children_cpu_ns()) {
  if (target_.is_command)
    return;
  for (const pid_t pid : target_.processes)
    processes_.emplace_back(pid, process_cpu_ns(pid).value_or(0));
  for (const pid_t tid : target_.threads)
    threads_.emplace_back(tid, thread_cpu_ns(tid).value_or(0));
  for (const pid_t pid : stream::descendants_of(target_.processes))
    children_.emplace_back(pid, process_cpu_ns(pid).value_or(0));
}

TargetActivity::Used TargetActivity::measure() const {
  Used used;
  if (target_.is_command) {
    used.own_ns = ended_children_cpu_ns() - ended_ns_;
    for (const pid_t pid : target_.processes)  // it is still there if it was not waited for
      used.own_ns += process_cpu_ns(pid).value_or(0) + children_cpu_ns(pid);
  }
  used.is_stopped = !processes_.empty() || !threads_.empty();
  for (const auto& [pid, before_ns] : processes_)
    used.own_ns += since(process_cpu_ns(pid), before_ns);
  for (const auto& [tid, before_ns] : threads_)
    used.own_ns += since(thread_cpu_ns(tid), before_ns);
  for (const Before* each : {&processes_, &threads_})
    for (const auto& [tid, before_ns] : *each) {
      const auto status = stream::status_of(tid);
      used.is_stopped = used.is_stopped && status && (status->state == 'T' || status->state == 't');
      used.has_ended = used.has_ended || (each == &processes_ ? stream::has_ended(tid)
                                                              : !status || status->state == 'Z');
    }
  for (const auto& [pid, before_ns] : children_)
    if (const std::uint64_t ran_ns = since(process_cpu_ns(pid), before_ns); ran_ns > 0) {
      used.children_ns += ran_ns;
      ++used.children;
    }
  return used;
}

std::string why_empty(const TargetActivity& activity, const Wanted& wanted) {
  constexpr const char* kStart = "nothing was recorded: ";
  if (const std::string why = of_both(activity, wanted, " or --engine ptrace (CAP_SYS_PTRACE)");
      !why.empty())
    return kStart + why;
  if (const std::string brief = of_brief_command(activity, wanted); !brief.empty())
    return brief;
  const TargetActivity::Used used = activity.used();
  if (used.is_stopped)
    return kStart + ("the target was stopped by a signal all the time" + of_children(used));
  return kStart + (used.own_ns == 0 ? of_idle(used) : of_running(used, wanted)) + of_children(used);
}

std::string why_no_waits(const TargetActivity& activity, const Wanted& wanted,
                         std::string_view did_not) {
  constexpr const char* kStart = "nothing was recorded: ";
  if (const std::string why = of_both(activity, wanted, ""); !why.empty())
    return kStart + why;
  const TargetActivity::Used used = activity.used();
  return kStart +
         (used.own_ns == 0
              ? of_idle(used)
              : fmt::format("the target ran for {} and {}", duration_text(used.own_ns), did_not)) +
         of_children(used);
}

int empty_status(const Child* child, int status) {
  if (child == nullptr)
    return kFailure;
  return status == kOk ? kOwnFailure : status;
}

}  // namespace pe::recording
