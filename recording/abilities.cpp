// SPDX-License-Identifier: MIT
#include "recording/abilities.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/io/input.h"
#include "recording/bpf/bpf_engine.h"
#include "recording/counters/attributes.h"
#include "recording/counters/counter.h"
#include "recording/counters/counters.h"
#include "recording/inprocess/command.h"
#include "recording/inprocess/runtime/tick.h"
#include "recording/own_process.h"
#include "recording/parts.h"
#include "recording/ptrace/ptrace_refusal.h"
#include "recording/signal/layout.h"
#include "stream/proc/own_rights.h"
#include "stream/records/event.h"

namespace pe::recording {
namespace {

constexpr const char* kYes = "yes";
constexpr const char* kNo = "no";

std::string file_text(const char* path) {
  constexpr std::size_t kMaxBytes = 256;
  auto text = read_small_file(path, kMaxBytes).value_or("");
  while (text.ends_with('\n'))
    text.pop_back();
  return text;
}

Ability sysctl_value(const char* name, const char* path, std::string more) {
  const std::string text = file_text(path);
  return {name, text.empty() ? "none" : text, std::move(more)};
}

Ability capability(const char* name, stream::Capability which, const char* gives) {
  if (stream::has_capability(which))
    return {name, kYes, gives};
  return {name, kNo,
          stream::is_in_first_user_namespace() || which == stream::Capability::kSysPtrace
              ? gives
              : "a capability of this user namespace does not suffice: ask its host"};
}

/// Tries to open a counter of an event.  Returns 0 or errno.
int try_counter(const char* event, bool with_kernel, stream::CounterPlace place) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  stream::set_event(attr, event);
  attr.disabled = 1;
  attr.exclude_kernel = with_kernel ? 0 : 1;
  attr.exclude_hv = 1;
  int error = 0;
  return stream::open_counter(attr, place, error) ? 0 : error;
}

Ability tried(const char* what, int error, const std::string& cure) {
  if (error == 0)
    return {what, kYes, ""};
  return {what, kNo, fmt::format("{}: {}", errno_text(error), cure)};
}

void add_counters(Abilities& found) {
  const int own = try_own_counter();
  found.has_perf = own == 0;
  const std::string denied =
      "a seccomp filter, as in containers (docker run --cap-add PERFMON), or paranoid above 2";
  found.lines.push_back(tried("perf_event_open: own processes", own, denied));
  found.lines.push_back(
      tried("perf_event_open: kernel stacks", try_counter("cpu-clock", true, {.pid = 0}),
            own != 0 ? denied : "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON"));
  found.lines.push_back(
      tried("perf_event_open: hardware cycles", try_counter("cycles", false, {.pid = 0}),
            own != 0 ? denied : "common in virtual machines; cpu-clock is used instead"));
  const std::vector<int> cpus = online_cpus();
  found.lines.push_back(
      tried("perf_event_open: whole system",
            try_counter("cpu-clock", true, {.pid = -1, .cpu = cpus.empty() ? 0 : cpus.front()}),
            own != 0 ? denied : "sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON"));
}

void add_bpf(Abilities& found) {
  constexpr const char* kBtf = "/sys/kernel/btf/vmlinux";
  const bool has_btf = ::access(kBtf, R_OK) == 0;
  found.lines.push_back({"BTF of the kernel", has_btf ? kYes : kNo,
                         has_btf ? "" : fmt::format("no {}: CONFIG_DEBUG_INFO_BTF", kBtf)});
  Ability bpf{"eBPF: stacks walked in the kernel", kYes, "--engine bpf"};
  try {
    Budget budget;
    const BpfEngine engine({}, {}, online_cpus().size(), budget);
    found.has_bpf = true;
  } catch (const Error& error) {
    bpf.answer = kNo;
    bpf.more = error.what();
  }
  found.lines.push_back(std::move(bpf));
}

void add_ptrace(Abilities& found) {
  std::string denied = why_left_out(Part::kPtrace);
  if (denied.empty())
    denied = why_no_ptrace();
  const int scope = ptrace_scope();
  constexpr std::array<const char*, 4> kScopes = {
      "own processes", "only commands started by pe-record; others need CAP_SYS_PTRACE, or 0",
      "CAP_SYS_PTRACE only", "nothing, until the next reboot"};
  const auto which = std::min<std::size_t>(static_cast<std::size_t>(scope), kScopes.size() - 1);
  const bool is_mighty = stream::has_capability(stream::Capability::kSysPtrace);
  found.has_ptrace = denied.empty() && (scope <= 1 || (scope == 2 && is_mighty));
  found.lines.push_back({"ptrace: threads stopped and read", found.has_ptrace ? kYes : kNo,
                         denied.empty() ? "--engine ptrace" : denied});
  found.lines.push_back(sysctl_value("kernel.yama.ptrace_scope",
                                     "/proc/sys/kernel/yama/ptrace_scope", kScopes[which]));
}

void add_signals(Abilities& found) {
  const std::string why_not = why_no_signals();
  found.has_signals = why_not.empty();
  found.lines.push_back(
      {"signals: commands sample themselves", found.has_signals ? kYes : kNo,
       found.has_signals ? fmt::format("--engine signal; CPU time up to {} Hz",
                                       std::min<std::uint64_t>(kNsPerSecond / inprocess::tick_ns(),
                                                               inprocess::kMostHz))
                         : why_not});
}

void add_limits(Abilities& found) {
  rlimit locked{};
  ::getrlimit(RLIMIT_MEMLOCK, &locked);
  constexpr rlim_t kKibibyte = 1024;
  found.lines.push_back({"locked memory limit (ulimit -l)",
                         locked.rlim_cur == RLIM_INFINITY
                             ? "unlimited"
                             : fmt::format("{} KiB", locked.rlim_cur / kKibibyte),
                         "for counter rings larger than the next value"});
  found.lines.push_back(
      sysctl_value("kernel.perf_event_mlock_kb", "/proc/sys/kernel/perf_event_mlock_kb",
                   "KiB of rings per user and CPU; for more, raise it, or use CAP_IPC_LOCK"));
  found.lines.push_back(sysctl_value("kernel.perf_event_max_sample_rate",
                                     "/proc/sys/kernel/perf_event_max_sample_rate",
                                     "Hz; the kernel lowers it if samples take too long"));
}

/// Reports the signs of a container that are visible from inside.
Ability container() {
  for (const char* path : {"/.dockerenv", "/run/.containerenv"})
    if (::access(path, F_OK) == 0)
      return {"container", kYes, fmt::format("{} exists; privileges come from its host", path)};
  if (!stream::is_in_first_pid_namespace())
    return {"container", kYes, "it has its own pid namespace; privileges come from its host"};
  return {"container", kNo, ""};
}

}  // namespace

std::string why_no_bpf() {
  using stream::Capability;
  using stream::has_capability;
  if (std::string why = why_left_out(Part::kBpf); !why.empty())
    return why;
  if (has_capability(Capability::kSysAdmin) ||
      (has_capability(Capability::kBpf) && has_capability(Capability::kPerfmon)))
    return {};
  return ::geteuid() == 0 ? "needs CAP_BPF and CAP_PERFMON" : "needs root";
}

std::string why_no_signals() {
  if (std::string why = why_left_out(Part::kSignal); !why.empty())
    return why;
#if !defined(__x86_64__)
  return "only on x86-64";
#else
  const Fd memory(::memfd_create("pe-record", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory)
    return fmt::format("memory cannot be shared here (memfd_create: {})", errno_text(errno));
  try {
    inprocess::find_library(inprocess::kSamplerLibrary);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
#endif
}

Abilities find_abilities() {
  Abilities found;
  found.lines.push_back(sysctl_value(
      "kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid",
      "2: your own processes; 1: with kernel frames; 0: everything; above 2: perhaps nothing"));
  found.lines.push_back(
      capability("CAP_PERFMON", stream::Capability::kPerfmon, "all of perf_event_open"));
  found.lines.push_back(capability("CAP_BPF", stream::Capability::kBpf, "with CAP_PERFMON: eBPF"));
  found.lines.push_back(capability("CAP_SYS_PTRACE", stream::Capability::kSysPtrace,
                                   stream::is_in_first_user_namespace()
                                       ? "processes of other users"
                                       : "processes of this user namespace"));
  found.lines.push_back(capability("CAP_SYS_ADMIN", stream::Capability::kSysAdmin,
                                   "the same as CAP_PERFMON and CAP_BPF"));
  add_counters(found);
  add_bpf(found);
  add_signals(found);
  add_ptrace(found);
  const int seccomp = seccomp_mode();
  found.lines.push_back({"seccomp filter on this process", seccomp == 0 ? kNo : kYes,
                         seccomp == 0 ? "" : "may deny any of the above"});
  add_limits(found);
  found.lines.push_back(container());
  for (const LeftOut& part : left_out())
    found.lines.push_back(
        {"left out of this build", fmt::format("{} ({})", part.what, part.option), ""});
  return found;
}

}  // namespace pe::recording
