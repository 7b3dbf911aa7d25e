// SPDX-License-Identifier: MIT
#include "recording/counters/attributes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "recording/counters/counter.h"
#include "recording/counters/counters.h"
#include "recording/counters/event_name.h"
#include "recording/counters/tracefs.h"
#include "recording/own_process.h"
#include "recording/refused.h"
#include "recording/request.h"
#include "recording/target_options.h"
#include "stream/proc/maps.h"
#include "stream/proc/own_rights.h"
#include "stream/user_copy.h"

namespace pe::recording {

std::vector<int> online_cpus() {
  constexpr std::size_t kMaxBytes = 64UL * 1024;
  auto text = read_small_file("/sys/devices/system/cpu/online", kMaxBytes);
  while (text && text->ends_with('\n'))
    text->pop_back();
  auto cpus = text ? parse_cpu_list(*text) : std::nullopt;
  if (cpus)
    return *cpus;
  std::vector<int> counted(static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))));
  for (std::size_t i = 0; i < counted.size(); ++i)
    counted[i] = static_cast<int>(i);
  return counted;
}

void describe_cpus(std::span<const CpuTime> times, std::span<const int> online, Closing& closing) {
  // Counters of very many CPUs start and stop one after the other.
  constexpr std::uint64_t kUsualNs = 100'000'000;
  constexpr std::string_view kFix = "record again while all CPUs are online";
  if (times.empty())
    return;
  const std::uint64_t most_ns = std::ranges::max(times, {}, &CpuTime::sampled_ns).sampled_ns;
  std::uint64_t gone = 0, missing_ns = 0;
  for (const CpuTime& time : times)
    if (time.sampled_ns + kUsualNs < most_ns) {
      ++gone;
      missing_ns += most_ns - time.sampled_ns;
    }
  if (gone > 0)
    closing.doubt(fmt::format("{} went offline and had no samples from then on, {:.2f} s in all",
                              plural(gone, "CPU"), static_cast<double>(missing_ns) / kNsPerSecond),
                  kFix);
  const auto late = std::ranges::count_if(online, [times](int cpu) {
    return std::ranges::find(times, cpu, &CpuTime::cpu) == times.end();
  });
  if (late > 0)
    closing.doubt(plural(static_cast<std::uint64_t>(late), "CPU") +
                      " came online during the recording and had no samples",
                  kFix);
}

namespace {

constexpr std::size_t kMaxSysctlBytes = 64;

std::string sysctl_text(const char* path) {
  auto text = read_small_file(path, kMaxSysctlBytes).value_or("unknown");
  if (text.ends_with('\n'))
    text.pop_back();
  return text;
}

void set_rate(perf_event_attr& attr, const Request& request, const std::string& event,
              std::vector<std::string>& notes) {
  const bool counts_passes = stream::is_tracepoint(attr) || request.probes.contains(event) ||
                             request.each_pass.contains(event);
  // With PERF_SAMPLE_PERIOD the kernel ignores the period of software events but clocks
  // (kernel/events/core.c, perf_swevent_event()).
  const bool ignores_period =
      counts_passes || (stream::is_software(attr) && !stream::is_clock(attr));
  if (ignores_period && request.period.value_or(1) > 1)
    throw UsageError(
        fmt::format("--count: the kernel records every {} event: use --count 1, or --freq", event));
  if (request.period || (counts_passes && !request.frequency_was_given)) {
    attr.sample_period = request.period.value_or(1);  // every pass of a tracepoint, as perf does
    return;
  }
  attr.freq = 1;
  attr.sample_freq = request.frequency_hz;
  const auto most = most_sample_hz();
  if (most && request.frequency_hz > *most) {
    notes.push_back(
        fmt::format("{} Hz exceeds kernel.perf_event_max_sample_rate: sampling at {} Hz",
                    request.frequency_hz, *most));
    attr.sample_freq = *most;
  }
  constexpr std::uint64_t kCheapHz = 1000;
  if (attr.sample_freq > kCheapHz)
    notes.push_back(fmt::format("{} Hz: above {} Hz, sampling itself slows the target noticeably",
                                attr.sample_freq, kCheapHz));
}

void set_what_to_keep(perf_event_attr& attr, const Request& request, const RingPlan& plan) {
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
  attr.sample_id_all = 1;
  if (request.call_graph != CallGraph::kNone)
    use_frame_pointers(attr, request);
  if (request.with_raw_data)
    attr.sample_type |= PERF_SAMPLE_RAW;
  if (plan.stack_bytes > 0) {
    attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attr.sample_regs_user = stream::wanted_user_regs();
    attr.sample_stack_user = plan.stack_bytes;
    if (request.clock_stack_bytes && stream::is_clock(attr) &&
        plan.stack_bytes == request.stack_bytes)  // the rings have room
      attr.sample_stack_user = *request.clock_stack_bytes;
    // If a program changes stacks, only one of them is copied.  The kernel's walk by frame pointers
    // leads beyond it.
    attr.exclude_callchain_user = request.keep_stacks ? 1 : 0;
  }
  if (request.kernel_only)
    attr.exclude_user = 1;
}

/// Returns the attr of a stopped counter of the same event in user code, which does not sample.
perf_event_attr counting_attr(const perf_event_attr& attr) {
  perf_event_attr counting{};
  counting.size = sizeof counting;
  counting.type = attr.type;
  counting.config = attr.config;
  counting.config1 = attr.config1;
  counting.config2 = attr.config2;
  counting.disabled = 1;
  counting.exclude_kernel = 1;
  counting.exclude_hv = 1;
  return counting;
}

}  // namespace

std::optional<std::uint64_t> most_sample_hz() {
  return parse_number<std::uint64_t>(sysctl_text("/proc/sys/kernel/perf_event_max_sample_rate"));
}

bool drop_refused_precision(perf_event_attr& attr) {
  if (attr.precise_ip == 0)
    return false;
  perf_event_attr probed = counting_attr(attr);
  probed.sample_period = std::uint64_t{1} << 32U;  // not reached before the probe ends
  probed.precise_ip = attr.precise_ip;
  int error = 0;
  if (stream::open_counter(probed, {.pid = 0}, error))
    return false;
  probed.precise_ip = 0;
  if (!stream::open_counter(probed, {.pid = 0}, error))
    return false;  // precision is not the problem
  attr.precise_ip = 0;
  return true;
}

bool can_count(const perf_event_attr& attr, int cpu) {
  perf_event_attr probed = counting_attr(attr);
  int error = 0;
  if (stream::open_counter(probed, {.pid = 0}, error))
    return true;
  probed.exclude_kernel = probed.exclude_hv = 0;  // PMUs of no process refuse these
  return static_cast<bool>(stream::open_counter(probed, {.pid = -1, .cpu = cpu}, error));
}

bool use_clock_for_cycles(perf_event_attr& attr, std::string& name) {
  if (attr.type != PERF_TYPE_HARDWARE || attr.config != PERF_COUNT_HW_CPU_CYCLES)
    return false;
  std::string modifiers = name.substr(std::min(name.find(':'), name.size()));
  std::erase(modifiers, 'p');
  name = "cpu-clock";
  stream::set_event(attr, name);
  if (modifiers.size() > 1)
    name += modifiers;
  attr.precise_ip = 0;
  attr.exclude_idle = 1;  // like cycles, it does not count while a CPU sleeps
  return true;
}

void use_frame_pointers(perf_event_attr& attr, const Request& request) {
  attr = stream::with_call_chain(attr);
  // Without kernel frames, time in the kernel still counts for the user code that called it.
  // Without user frames, only time in the kernel can count.
  attr.exclude_callchain_kernel = request.user_only ? 1 : 0;
  attr.exclude_callchain_user = request.kernel_only ? 1 : 0;
}

perf_event_attr make_attr(const Request& request, const RingPlan& plan, const std::string& event,
                          std::vector<std::string>& notes) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  const EventName parsed = parse_event(event);
  EventSources().set_event(attr, parsed);
  if (parsed.kind == EventName::Kind::kTracepoint) {
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = tracepoint_id(parsed.name);
  }
  const auto probe = request.probes.find(event);
  if (probe != request.probes.end()) {
    EventSources().set_probe(attr, probe->second);
    if (!probe->second.note.empty())
      notes.push_back(probe->second.note);
  }
  set_rate(attr, request, event, notes);
  set_what_to_keep(attr, request, plan);
  // eBPF programs read the same clock, so on-CPU and off-CPU times can be compared.
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = plan.watermark_bytes;
  return attr;
}

perf_event_attr make_tracking_attr(const perf_event_attr& sampling) {
  constexpr std::uint64_t kInTrailers =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = sampling.sample_type & kInTrailers;
  attr.sample_id_all = 1;
  // It reports nothing about the kernel, so users may open it for their own processes.
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.use_clockid = sampling.use_clockid;
  attr.clockid = sampling.clockid;
  attr.watermark = 1;
  attr.wakeup_watermark = sampling.wakeup_watermark;
  follow_tasks(attr);
  attr.inherit = sampling.inherit;
  attr.disabled = sampling.disabled;
  attr.enable_on_exec = sampling.enable_on_exec;
  attr.read_format = sampling.read_format;
  return attr;
}

perf_event_attr make_switch_attr(const perf_event_attr& sampling, const RingPlan& plan) {
  perf_event_attr attr = make_tracking_attr(sampling);
  attr.context_switch = 1;
  attr.wakeup_watermark = static_cast<std::uint32_t>(plan.switch_ring_bytes() / 2);
  return attr;
}

perf_event_attr make_wakeup_attr(const perf_event_attr& sampling, const RingPlan& plan) {
  perf_event_attr attr = make_cpu_attr(sampling);
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = tracepoint_id(kWakeupTracepoint);
  attr.freq = 0;
  attr.sample_period = 1;
  attr.sample_type |= PERF_SAMPLE_RAW;
  attr.sample_type &= ~std::uint64_t{PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER};
  attr.sample_regs_user = 0;
  attr.sample_stack_user = 0;
  attr.exclude_callchain_kernel = attr.exclude_callchain_user = 1;
  attr.wakeup_watermark = static_cast<std::uint32_t>(plan.switch_ring_bytes() / 2);
  return attr;
}

perf_event_attr make_mark_attr(const perf_event_attr& sampling, const Probe& probe) {
  perf_event_attr attr = sampling;
  EventSources().set_probe(attr, probe);
  attr.freq = 0;
  attr.sample_period = 1;
  attr.precise_ip = 0;
  attr.exclude_user = attr.exclude_kernel = attr.exclude_hv = attr.exclude_idle = 0;
  attr.exclude_callchain_kernel = attr.exclude_callchain_user = 1;
  if (stream::has_user_copy(attr))
    attr.sample_stack_user = sizeof(std::uint64_t);
  return attr;
}

perf_event_attr make_cpu_attr(perf_event_attr sampling) {
  sampling.mmap = 0;
  sampling.mmap2 = 0;
  sampling.build_id = 0;
  sampling.comm = 0;
  sampling.comm_exec = 0;
  sampling.task = 0;
  sampling.inherit = 0;
  sampling.enable_on_exec = 0;
  return sampling;
}

void follow_tasks(perf_event_attr& attr) {
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.build_id = stream::has_build_ids() ? 1 : 0;  // replaces the inode; identifies the content
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
}

int perf_event_paranoid() {
  const std::string text = sysctl_text("/proc/sys/kernel/perf_event_paranoid");
  const bool is_negative = text.starts_with('-');
  const auto level = parse_number<std::uint8_t>(std::string_view(text).substr(is_negative ? 1 : 0));
  constexpr int kVeryHigh = 100;
  return level ? (is_negative ? -1 : 1) * static_cast<int>(*level) : kVeryHigh;
}

std::string missing_right(int needed_level, std::string_view purpose) {
  return fmt::format("perf_event_paranoid is {}; need {} or CAP_PERFMON {}",
                     sysctl_text("/proc/sys/kernel/perf_event_paranoid"), needed_level, purpose);
}

void Counters::set_filter(const Counter& counter) const {
  const OpenedEvent& event = events_[counter.event];
  int error = 0;
  if (!event.filter.empty() && !counter.only_follows &&
      !stream::set_filter(counter.fd, event.filter, error))
    throw Error(fmt::format("--filter: {}: refused by the kernel for {}: {}{}",
                            in_quotes(event.filter), event.name, errno_text(error),
                            error == EINVAL ? ": write FIELD OP NUMBER, as in 'bytes > 4096'; "
                                              "pe-record --list shows its fields"
                                            : ""));
}

/// Throws the reason why no part of the target exists, or exists any more.
void Counters::refuse_target() const {
  for (const auto& [option, ids] :
       {std::pair("--pid", &target_.processes), std::pair("--tid", &target_.threads)})
    for (const pid_t id : *ids)
      if (const auto status = stream::status_of(id); status && status->state == 'Z')
        throw Error(fmt::format("{}: {}: has ended (a zombie)", option, id));
  throw Error(why_not_found("no such process or thread"));
}

/// Checks for free descriptors, because the recorder opens files of processes while it records
/// them.
void Counters::check_room() const {
  std::array<Fd, 4> spare;
  for (Fd& fd : spare) {
    fd = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd)
      refuse(events_.front(), errno);
  }
}

/// Throws for a missing privilege, or for a missing system call.
void Counters::refuse_right(const OpenedEvent& event, int error) const {
  // Detects that we may not even count our own time, though no known setting forbids it.
  const bool is_allowed = perf_event_paranoid() <= 2 ||
                          stream::has_capability(stream::Capability::kPerfmon) ||
                          stream::has_capability(stream::Capability::kSysAdmin);
  if (const int own = try_own_counter(); own != 0 && (own == ENOSYS || is_allowed))
    throw Refused(fmt::format("perf_event_open(2) is blocked here ({}) by a seccomp filter, as in "
                              "containers, or missing from the kernel",
                              errno_text(own)),
                  {.is_denied = own != ENOSYS, .lacks_counters = true});
  if (!event.probed_offsets.empty())
    throw Refused("--event: probes need CAP_PERFMON, or root", kNoCounters);
  if (target_.is_wide())
    throw Refused(missing_right(0, "to record other processes"), kNoCounters);
  if (stream::is_tracepoint(event.attr))
    throw Refused(missing_right(-1, "for tracepoints"), kNoCounters);
  const bool is_of_kernel = event.attr.exclude_user != 0;
  if (error != ENOSYS && !is_of_kernel && perf_event_paranoid() <= 2)
    throw Denied("the target belongs to another user: this needs root or CAP_PERFMON");
  throw Refused(missing_right(is_of_kernel ? 1 : 2, "to record your own processes"), kNoCounters);
}

void Counters::refuse(const OpenedEvent& event, int error) const {
  if (error == EBADF && !target_.cgroup.empty())
    throw Error(
        fmt::format("--cgroup: {}: not a control group that counts events", target_.cgroup));
  if (error == ENOSYS || error == EACCES || error == EPERM)
    refuse_right(event, error);
  if (error == EMFILE || error == ENFILE)
    throw Error(
        fmt::format("too many threads: one counter per thread and CPU, {} so far, needs more open "
                    "files than ulimit -n allows",
                    counters_.size()));
  constexpr int kNotSupported = 524;  // ENOTSUPP (include/linux/errno.h)
  if (error == kNotSupported && !event.probed_offsets.empty())
    throw Error(
        fmt::format("--event: {}: the kernel cannot probe the instruction there (some vector "
                    "instructions, and those with a lock prefix): probe another place",
                    event.name));
  constexpr std::uint32_t kFirstOfSysfs = PERF_TYPE_BREAKPOINT + 1;
  if (event.attr.type >= kFirstOfSysfs && (error == EINVAL || error == EOPNOTSUPP))
    throw Error(
        fmt::format("--event: {}: {}", event.name,
                    can_count(event.attr, cpus_.front())
                        ? "the kernel counts this event, but cannot sample it: use perf stat"
                        : "refused by the kernel: check its terms (see perf list)"));
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
    throw Error(fmt::format("--event: {}: not available on this machine", event.name));
  if (error == EINVAL && request_.period)
    throw Error(fmt::format("--count: {}: refused by the kernel", *request_.period));
  throw_errno("perf_event_open: " + event.name, error);
}

void Counters::check_cpus() const {
  const std::vector<int> online = online_cpus();
  for (const int cpu : target_.cpus)
    if (std::find(online.begin(), online.end(), cpu) == online.end())
      throw Error(fmt::format("--cpu: {}: no such CPU is online", cpu));
}

/// Throws Error unless the kernel has placed a probe in the file whose code we have examined.  The
/// path that the kernel gets leads to our open file (ProbedImage), so this never fails; a
/// breakpoint elsewhere would be in the programs of others.  A probe of a single thread has its
/// breakpoints in that process only.
void Counters::check_breakpoint(const OpenedEvent& event, const stream::CounterPlace& place,
                                const MappedCode& code) {
  const bool is_of_all = place.pid < 0 || place.is_cgroup;
  if (!code.has_file() || !is_of_all)
    return;
  if (!code.is_mapped())
    throw Error(
        fmt::format("--event: {}: {} cannot be mapped as code, so the place of the probe cannot be "
                    "checked: mount its file system without noexec",
                    event.name, event.probed_file->path()));
  if (!code.has_breakpoint())
    throw Error(fmt::format("--event: {}: the kernel has not placed the probe in {}", event.name,
                            event.probed_file->path()));
}

/// Throws Error, which removes all probes, if a file was written to since it was examined.
void Counters::check_probed_files() const {
  for (const OpenedEvent& event : events_)
    if (event.probed_file && !event.probed_file->is_unchanged())
      throw Error(fmt::format(
          "--event: {}: {} changed while probes were placed in it: try again once nobody writes "
          "to it",
          event.name, event.probed_file->path()));
}

}  // namespace pe::recording
