// SPDX-License-Identifier: MIT
#include "recording/counters/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "recording/counters/counter.h"
#include "recording/counters/event_name.h"
#include "recording/counters/event_sources.h"
#include "stream/records/tracepoint.h"
#include "stream/user_copy.h"

namespace pe::recording {
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
    attr.config = stream::tracepoint_id(parsed.name);
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

}  // namespace pe::recording
