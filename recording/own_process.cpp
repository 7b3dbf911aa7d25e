// SPDX-License-Identifier: MIT
#include "recording/own_process.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/error.h"
#include "recording/counters/counter.h"
#include "stream/proc/own_rights.h"
#include "stream/records/event.h"

namespace pe::recording {

void keep_rights_to_record(bool uses_bpf) {
  std::uint64_t kept = 0;
  for (const stream::Capability each :
       {stream::Capability::kDacReadSearch, stream::Capability::kKill,
        stream::Capability::kSysPtrace, stream::Capability::kSyslog,
        stream::Capability::kCheckpointRestore})  // for /proc/PID/map_files
    kept |= std::uint64_t{1} << static_cast<unsigned>(each);
  if (uses_bpf)
    for (const stream::Capability each : {stream::Capability::kPerfmon, stream::Capability::kBpf})
      kept |= std::uint64_t{1} << static_cast<unsigned>(each);
  // capget(2): a set is two words of 32 bits; pid 0 means the calling thread.
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0)
    throw_errno("capget", errno);
  constexpr unsigned kWordBits = 32;
  for (__user_cap_data_struct& word : sets) {
    const auto mask = static_cast<std::uint32_t>(kept);
    kept >>= kWordBits;
    word = {word.effective & mask, word.permitted & mask, 0};
  }
  if (::syscall(SYS_capset, &header, sets.data()) != 0)
    throw_errno("capset", errno);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw_errno("PR_SET_NO_NEW_PRIVS", errno);
}

int try_own_counter() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  stream::set_event(attr, "cpu-clock");
  attr.disabled = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  int error = 0;
  return stream::open_counter(attr, {.pid = 0}, error) ? 0 : error;
}

int seccomp_mode() {
  const int mode = ::prctl(PR_GET_SECCOMP);
  return mode < 0 ? 0 : mode;
}

namespace {

int own_nice() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }
void set_nice(int nice) { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice); }

/// Since Linux 6.12, a thread with shorter slices preempts the running thread at once.  This needs
/// no privileges (sched(7), sched_setattr(2)).
void ask_for_short_slices() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attr{};
  attr.size = sizeof attr;
  attr.nice = own_nice();
  attr.runtime = 100'000;  // the shortest
  ::syscall(SYS_sched_setattr, 0, &attr, 0);
}

}  // namespace

void run_before_others() {
  constexpr int kFirst = -20;
  if (own_nice() > 0 || ::sched_getscheduler(0) != SCHED_OTHER)
    return;
  set_nice(kFirst);
  ask_for_short_slices();
}

void run_among_others() {
  if (own_nice() < 0)
    set_nice(0);
}

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr double kMicrosecond = 1e-6;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * kMicrosecond;
}

void OwnCost::end_wall(std::uint64_t now_ns) noexcept {
  ended_ns_ = now_ns;
  cpu_at_end_ = own_cpu_seconds();
}

double OwnCost::wall_seconds() const {
  constexpr double kNanosecond = 1e-9;
  return static_cast<double>(ended_ns_ - began_ns_) * kNanosecond;
}

std::string OwnCost::describe_length() const { return fmt::format("{:.2f} s", wall_seconds()); }

std::string OwnCost::percent() const {
  // Starting up takes some milliseconds of CPU time, which would be most of the cost.
  constexpr double kLeastSeconds = 0.5;
  if (wall_seconds() < kLeastSeconds)
    return {};
  return fmt::format("{:.2f}", 100 * own_cpu_seconds() / wall_seconds());
}

std::string OwnCost::describe_rest() const {
  return fmt::format("{:.3f} s of CPU after the end", own_cpu_seconds() - cpu_at_end_);
}

std::string OwnCost::describe() const {
  const double wall = wall_seconds();
  const double cpu = own_cpu_seconds();
  return fmt::format("own CPU {:.3f} s, {:.2f} % of {:.2f} s", cpu,
                     wall > 0 ? 100 * cpu / wall : 0.0, wall);
}

}  // namespace pe::recording
