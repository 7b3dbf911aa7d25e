// SPDX-License-Identifier: MIT
#include "recording/counters/counters.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "recording/counters/attributes.h"
#include "recording/own_process.h"
#include "recording/probes/marks.h"
#include "recording/refused.h"
#include "recording/request.h"
#include "recording/target_options.h"
#include "stream/proc/maps.h"
#include "stream/user_copy.h"

namespace pe::recording {
namespace {

Fd open_cgroup(const std::string& path) {
  const auto open = [](const std::string& folder) {
    return Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  };
  if (path.starts_with('/'))
    if (Fd fd = open(path))
      return fd;
  // cgroup v1 has a separate hierarchy for perf_event.  The v2 hierarchy counts events without one;
  // systemd's hybrid set-up keeps it in "unified".
  for (const char* root :
       {"/sys/fs/cgroup/perf_event/", "/sys/fs/cgroup/unified/", "/sys/fs/cgroup/"})
    if (Fd fd = open(root + path))
      return fd;
  throw_errno("--cgroup: " + path, errno);
}

constexpr pid_t kWholeCpu = -1;

/// Returns the value of an event; `otherwise` if it has none.
template <typename Value>
Value value_or(const std::map<std::string, Value>& values, const std::string& event,
               const Value& otherwise) {
  const auto value = values.find(event);
  return value == values.end() ? otherwise : value->second;
}

std::optional<EventWeight> weight_of(const Request& request, const std::string& event) {
  const auto weight = request.weights.find(event);
  return weight == request.weights.end() ? std::nullopt : std::optional(weight->second);
}

}  // namespace

Counters::Counters(Request request, Target target, unwind::BpfObject* walker)
    : request_(std::move(request)),
      target_(std::move(target)),
      walker_(walker),
      cpus_(target_.cpus.empty() ? online_cpus() : target_.cpus) {
  raise_descriptor_limit();
  check_cpus();
  plan_ = first_plan(request_, cpus_.size());
  const std::uint32_t wanted_bytes = plan_.stack_bytes;
  while (!open_all()) {
    const auto smaller = smaller_plan(plan_, request_, cpus_.size());
    if (!smaller)
      throw Error(
          fmt::format("rings of {} pages per CPU exceed the lock limit, which all recordings of a "
                      "user share: raise kernel.perf_event_mlock_kb or ulimit -l{}",
                      plan_.pages, plan_.pages > 1 ? ", or lower --mmap-pages" : ""));
    plan_ = *smaller;
    is_at_lock_limit_ = true;
    forget_all();
  }
  const bool has_no_target =
      request_.of_cpus_only
          ? !target_.is_wide() && std::ranges::all_of(target_.processes, stream::has_ended)
          : std::ranges::all_of(counters_, &Counter::is_of_cpu);
  if (has_no_target)
    refuse_target();
  check_room();
  check_probed_files();
  if (plan_.stack_bytes < wanted_bytes)
    notes_.push_back(
        fmt::format("the lock limit leaves room to copy {} bytes of each stack, not {} (ulimit -l, "
                    "kernel.perf_event_mlock_kb)",
                    plan_.stack_bytes, wanted_bytes));
}

/// Returns false if the rings exceed the lock limit.
bool Counters::open_all() {
  make_events();
  open_cpus();
  if (!target_.cgroup.empty()) {
    const Fd cgroup = open_cgroup(target_.cgroup);
    open_everywhere({.pid = cgroup.get(), .is_cgroup = true});
  } else if (target_.is_everything || request_.of_cpus_only) {
    open_everywhere({.pid = kWholeCpu});
  }
  for (const pid_t pid : target_.processes)
    open_process(pid, target_.may_end(pid));
  for (const pid_t tid : target_.threads)
    open_everywhere({.pid = tid});
  return !rings_are_refused_;
}

void Counters::forget_all() {
  counters_.clear();
  rings_.clear();
  ring_fds_.clear();
  events_.clear();
  notes_.clear();
  rings_are_refused_ = false;
}

void Counters::make_events() {
  is_default_event_ = request_.events.empty();
  const std::vector<std::string> names =
      is_default_event_ ? std::vector<std::string>{"cycles"} : request_.events;
  const Probe none;
  for (const std::string& name : names) {
    const auto found = request_.probes.find(name);
    const Probe& probe = found == request_.probes.end() ? none : found->second;
    events_.push_back({.attr = make_attr(request_, plan_, name, notes_),
                       .name = value_or(request_.shown_names, name, name),
                       .ids = {},
                       .probed_offsets = probe.offsets,
                       .probed_file = probe.file,
                       .filter = value_or(request_.filters, name, std::string()),
                       .weight = weight_of(request_, name)});
  }
  for (OpenedEvent& event : events_)
    if (drop_refused_precision(event.attr))
      notes_.push_back(fmt::format("{}: no precise samples here: sampling without p", event.name));
  choose_clock();
  add_marks(request_, events_, notes_);
  if (request_.with_wakeups)
    events_.push_back({.attr = make_wakeup_attr(events_.front().attr, plan_),
                       .name = kWakeupTracepoint,
                       .ids = {},
                       .has_own_rings = true});
  if (request_.with_switches)
    events_.push_back({.attr = make_switch_attr(events_.front().attr, plan_),
                       .name = "dummy",
                       .ids = {},
                       .has_own_rings = true});
  follow_tasks(request_.with_switches ? events_.back().attr : events_.front().attr);
  for (OpenedEvent& event : events_) {
    const bool is_of_threads = !target_.processes.empty() && !request_.of_cpus_only;
    event.attr.inherit = is_of_threads ? 1 : 0;
    // Rings that nobody reads yet must not fill while hundreds of counters are being opened.
    event.attr.disabled = 1;
    event.attr.enable_on_exec = is_of_threads && target_.is_command ? 1 : 0;
    event.attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_LOST;
    event.is_of_cpus = may_count_cpus(event);
  }
}

/// If hardware counters are missing, chooses the clock before the first counter is opened.
void Counters::choose_clock() {
  perf_event_attr probed = events_.front().attr;
  probed.exclude_kernel = 1;
  probed.disabled = 1;
  int error = 0;
  if (is_default_event_ && !stream::open_counter(probed, {.pid = 0}, error))
    replace_cycles(events_.front(), error);
}

/// Accepts clocks, which count the same wherever they are started.  Counters of CPUs also sample
/// threads that run for less than a period.  Probes must be of CPUs: a probe that a new thread
/// inherits is opened anew, with the path at the same address in the memory of the target, which
/// has none there.  The target could then start no more threads (Linux 6.18, perf_uprobe_init()).
bool Counters::may_count_cpus(const OpenedEvent& event) {
  const perf_event_attr& attr = event.attr;
  if (request_.with_wakeups && event.name == kWakeupTracepoint)
    return !target_.is_everything;
  if (!target_.is_of_processes() || cpus_.empty())
    return false;
  if (!event.probed_offsets.empty()) {
    if (!has_filter())
      throw Denied(
          "probes of processes need an eBPF program that leaves out all others: this needs CAP_BPF "
          "and CAP_PERFMON, or root; or record the whole system (--all)");
    return true;
  }
  if (!stream::is_clock(attr) || request_.with_switches)
    return false;
  perf_event_attr probed{};
  probed.size = sizeof probed;
  probed.type = attr.type;
  probed.config = attr.config;
  probed.disabled = 1;
  int error = 0;
  if (!stream::open_counter(probed, {.pid = -1, .cpu = cpus_.front()}, error))
    return false;
  return has_filter();
}

/// Returns whether the kernel drops samples of other processes.
bool Counters::has_filter() {
  if (walker_ != nullptr || filter_)
    return true;
  try {
    filter_ = unwind::load_target_filter();
  } catch (const Error&) {
    return false;  // each thread has its own counters, as with other events
  }
  return true;
}

/// Must be called before the process's first counter is opened.  The kernel's program itself adds
/// the processes that it forks later.
void Counters::add_to_filter(pid_t pid) {
  const auto start = target_.is_command ? unwind::kTargetAfterExec : unwind::kTargetStarted;
  const auto tgid = static_cast<std::uint32_t>(pid);
  const bool is_added = walker_ != nullptr ? walker_->add_target(tgid, start)
                        : filter_          ? filter_->add_target(tgid, start)
                                           : true;
  if (!is_added)
    throw Error(fmt::format("--pid: {}: too many processes", pid));
}

/// Opens counters of all threads, including those that appear meanwhile.  A thread made by a
/// counted thread inherits its counters, so only earlier threads can be missed.  Another scan finds
/// these.
void Counters::open_process(pid_t pid, bool may_end) {
  add_to_filter(pid);
  std::unordered_set<pid_t> known;
  for (bool found_more = true; found_more && !rings_are_refused_;) {
    found_more = false;
    for (const pid_t tid : stream::threads_of(pid)) {
      if (!known.insert(tid).second)
        continue;
      found_more = !request_.of_cpus_only;
      if (found_more)
        open_everywhere({.pid = tid});
    }
  }
  if (known.empty() && !may_end)
    throw Error(fmt::format("--pid: {}: {}", pid, why_not_found("no such process")));
}

/// Opens the counters that sample whole CPUs, if others are of threads.
void Counters::open_cpus() {
  if (request_.of_cpus_only)
    return;
  for (std::size_t event = 0; event < events_.size(); ++event)
    for (const int cpu : cpus_)
      if (const stream::CounterPlace place{.pid = kWholeCpu, .cpu = cpu};
          events_[event].is_of_cpus && !rings_are_refused_ && !only_follows(event, place))
        open_one(event, place);
}

/// Returns whether a counter at `place` only follows threads, because the event is counted
/// elsewhere: on whole CPUs, or by a program.  A probe's program runs on all CPUs, whichever its
/// counter is of.
bool Counters::only_follows(std::size_t event, const stream::CounterPlace& place) const {
  return (events_[event].is_of_cpus && place.pid != kWholeCpu) ||
         (is_hit_by_program(event) && place.cpu != cpus_.front());
}

bool Counters::is_hit_by_program(std::size_t event) const {
  return walker_ != nullptr && !events_[event].probed_offsets.empty();
}

/// Returns whether the event has its own counter at `place`.  Of the events that are counted
/// elsewhere, only the first has counters that follow threads.
bool Counters::is_opened_there(std::size_t event, const stream::CounterPlace& place) const {
  return !events_[event].is_denied && (event == 0 || !only_follows(event, place));
}

perf_event_attr Counters::attr_there(std::size_t event, const stream::CounterPlace& place) const {
  const OpenedEvent& opened = events_[event];
  if (only_follows(event, place))
    return make_tracking_attr(opened.attr);
  const perf_event_attr attr =
      walker_ != nullptr ? stream::without_stacks(opened.attr) : opened.attr;
  return opened.is_of_cpus ? make_cpu_attr(attr) : attr;
}

/// Opens every event on every CPU for one place.  A thread that has ended meanwhile is not an
/// error.
void Counters::open_everywhere(const stream::CounterPlace& place) {
  for (const int cpu : cpus_)
    for (std::size_t event = 0; event < events_.size(); ++event)
      if (const stream::CounterPlace there{place.pid, cpu, place.is_cgroup};
          !is_opened_there(event, there))
        continue;
      else if (rings_are_refused_ || !open_one(event, there))
        return;
}

/// Returns false if the thread has ended.
bool Counters::open_one(std::size_t event, stream::CounterPlace place) {
  const auto& offsets = events_[event].probed_offsets;
  if (offsets.empty() || only_follows(event, place))
    return open_one(event, place, 0);
  return std::all_of(offsets.begin(), offsets.end(),
                     [&](std::uint64_t offset) { return open_one(event, place, offset); });
}

/// Does the same for one of a probe's places; `probed_offset` is 0 for other events.
bool Counters::open_one(std::size_t event, stream::CounterPlace place,
                        std::uint64_t probed_offset) {
  for (;;) {
    int error = 0;
    perf_event_attr attr = attr_there(event, place);
    if (probed_offset != 0)
      attr.config2 = probed_offset;
    const MappedCode code(probed_offset == 0 ? nullptr : events_[event].probed_file.get(),
                          probed_offset);
    Fd counter = stream::open_counter(attr, place, error);
    if (counter) {
      check_breakpoint(events_[event], place, code);
      const bool is_of_cpu = events_[event].is_of_cpus && place.pid == kWholeCpu;
      attach_to_ring({std::move(counter), event, place.cpu, is_of_cpu, only_follows(event, place)});
      return true;
    }
    if (error == ESRCH && !place.is_cgroup)
      return false;
    if (error == ENODEV && target_.cpus.empty() && stream::is_software(events_[event].attr))
      return true;  // the CPU went offline meanwhile
    if (!adapt(events_[event], error))
      refuse(events_[event], error);
    if (events_[event].is_denied)
      return true;
  }
}

/// Replaces CPU cycles by the CPU's clock if there are no hardware counters, as perf does, with the
/// same modifiers but for the precision.  Keeps a period that the user gave in cycles: the clock's
/// unit is nanoseconds.  Returns whether it replaced them.
bool Counters::replace_cycles(OpenedEvent& event, int error) {
  const bool is_missing = error == ENOENT || error == EOPNOTSUPP || error == ENODEV ||
                          (is_default_event_ && error == EINVAL);
  const bool has_own_period = request_.period && !is_default_event_;
  if (!is_missing || has_own_period || !use_clock_for_cycles(event.attr, event.name))
    return false;
  notes_.push_back(fmt::format("no hardware counters here: sampling {}", event.name));
  return true;
}

/// Reduces the requirements of an event that the kernel refused.  Returns false if none can be
/// dropped.
bool Counters::adapt(OpenedEvent& event, int error) {
  if (replace_cycles(event, error))
    return true;
  const bool is_probe = !event.probed_offsets.empty();
  const bool is_denied = (error == EACCES || error == EPERM) && !is_probe;
  const bool wants_everything = target_.is_wide() || event.attr.exclude_user != 0;
  if (is_denied && !wants_everything && event.attr.exclude_kernel == 0 &&
      !stream::is_tracepoint(event.attr)) {
    if (request_.with_switches) {  // switches happen in the kernel only
      event.is_denied = true;
      notes_.push_back(missing_right(1, "for stacks") +
                       "; recording only the times of each thread");
      return true;
    }
    event.attr.exclude_kernel = 1;
    event.attr.exclude_hv = 1;
    notes_.push_back(missing_right(1, "for kernel stacks") + "; recording user stacks only");
    return true;
  }
  if (error == EINVAL && (event.attr.read_format & PERF_FORMAT_LOST) != 0) {
    event.attr.read_format &= ~std::uint64_t{PERF_FORMAT_LOST};  // before Linux 6.0
    return true;
  }
  const bool is_unsupported = error == EINVAL || error == EOPNOTSUPP;
  if (is_unsupported && walker_ == nullptr && request_.call_graph == CallGraph::kAuto &&
      stream::has_user_copy(event.attr)) {
    for (OpenedEvent& other : events_)  // all have the same layout
      use_frame_pointers(other.attr, request_);
    notes_.emplace_back("cannot copy stacks here: following frame pointers");
    return true;
  }
  return false;
}

/// Attaches the kernel's programs.  They see a counter's samples, whichever ring these are written
/// to.
void Counters::attach_programs(const Counter& counter) {
  const auto id = stream::id_of(counter.fd);
  if (id)
    events_[counter.event].ids.push_back(*id);
  const auto kind = events_[counter.event].probed_offsets.empty() ? unwind::CounterKind::kSampling
                                                                  : unwind::CounterKind::kProbe;
  if (walker_ != nullptr && id && !counter.only_follows) {
    if (const auto& weight = events_[counter.event].weight)
      if (const auto of_hit = weight_of_hit(weight->weight))
        walker_->set_weight(*id, *of_hit);
    walker_->attach_to_counter(counter.fd.get(), *id, kind);
  }
  if (walker_ == nullptr && counter.is_of_cpu && filter_)
    filter_->attach_to_counter(counter.fd.get(), kind);
}

void Counters::attach_to_ring(Counter counter) {
  attach_programs(counter);
  set_filter(counter);
  const bool has_own_rings = events_[counter.event].has_own_rings;
  const auto owner = std::find_if(counters_.begin(), counters_.end(), [&](const Counter& other) {
    return other.cpu == counter.cpu && events_[other.event].has_own_rings == has_own_rings;
  });
  int error = 0;
  if (owner != counters_.end()) {
    if (!stream::share_ring(counter.fd, owner->fd, error))
      throw_errno("sharing a ring", error);
  } else {
    auto ring =
        stream::Ring::map(counter.fd, has_own_rings ? plan_.switch_pages() : plan_.pages, error);
    rings_are_refused_ = !ring && error == EPERM;
    if (rings_are_refused_)
      return;
    if (!ring)
      throw_errno("mapping a ring", error);
    rings_.push_back(std::move(*ring));
    ring_fds_.push_back(counter.fd.get());
  }
  counters_.push_back(std::move(counter));
}

std::optional<std::uint64_t> Counters::lost(std::size_t event) const {
  if ((events_[event].attr.read_format & PERF_FORMAT_LOST) == 0)
    return std::nullopt;
  std::uint64_t lost = 0;
  for (const Counter& counter : counters_)
    if (counter.event == event)
      lost += stream::lost_of(counter.fd).value_or(0);
  return lost;
}

void Counters::describe_cpus(Closing& closing) const {
  if (!target_.cgroup.empty())
    return;  // its counters run only while it does
  std::vector<CpuTime> times;
  for (const Counter& counter : counters_)  // a probe has one for each of its places
    if (!is_hit_by_program(counter.event) && (counter.is_of_cpu || target_.is_wide()) &&
        std::ranges::find(times, counter.cpu, &CpuTime::cpu) == times.end())
      times.push_back({counter.cpu, stream::enabled_ns_of(counter.fd).value_or(0)});
  const bool has_all = target_.cpus.empty();
  recording::describe_cpus(times, has_all ? online_cpus() : std::vector<int>(), closing);
}

std::uint64_t Counters::not_followed() const {
  if (walker_ != nullptr)
    return walker_->counts().targets_full;
  return filter_ ? filter_->not_followed() : 0;
}

std::optional<SampledClock> Counters::sampled_clock() const {
  const perf_event_attr& attr = events_.front().attr;
  const auto sampling = std::count_if(events_.begin(), events_.end(),
                                      [](const OpenedEvent& event) { return !event.is_mark; });
  if (!stream::is_clock(attr) || sampling != 1 || target_.is_wide() || !target_.cpus.empty() ||
      attr.exclude_user != 0 || attr.exclude_kernel != 0)
    return std::nullopt;
  return SampledClock{
      .period_ns = attr.freq != 0 ? kNsPerSecond / attr.sample_freq : attr.sample_period,
      .kind = events_.front().is_of_cpus ? SampledClock::Kind::kOfCpus
                                         : SampledClock::Kind::kOfThreads};
}

perf_event_attr Counters::layout() const {
  perf_event_attr layout = events_.front().attr;
  const perf_event_attr& follows = events_.back().attr;
  if (request_.with_switches) {
    layout.mmap = follows.mmap;
    layout.mmap2 = follows.mmap2;
    layout.build_id = follows.build_id;
    layout.comm = follows.comm;
    layout.comm_exec = follows.comm_exec;
    layout.task = follows.task;
  }
  return layout;
}

/// Starts one event after the other, so that no switch is reported before its sample could be
/// recorded.
void Counters::start() {
  for (std::size_t event = 0; event < events_.size(); ++event)
    for (const Counter& counter : counters_)
      if (counter.event == event && (counter.is_of_cpu || events_[event].attr.enable_on_exec == 0))
        stream::enable(counter.fd);
}

void Counters::stop() {
  for (std::size_t event = events_.size(); event-- > 0;)
    for (const Counter& counter : counters_)
      if (counter.event == event)
        stream::disable(counter.fd);
}

}  // namespace pe::recording
