// The reasons why counters could not be opened, or have no filter.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "recording/counters/attributes.h"
#include "recording/counters/counters.h"
#include "recording/counters/cpu_times.h"
#include "recording/counters/mapped_code.h"
#include "recording/own_rights.h"
#include "recording/refused.h"
#include "stream/proc/maps.h"
#include "stream/proc/own_rights.h"

namespace pe::recording {

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
    throw Refused(
        fmt::format("perf_event_open(2) is blocked here ({}) by a seccomp filter, as in "
                    "containers, or missing from the kernel",
                    errno_text(own)));
  if (!event.probed_offsets.empty())
    throw Refused("--event: probes need CAP_PERFMON, or root");
  if (target_.is_wide())
    throw Refused(missing_right(0, "to record other processes"));
  if (stream::is_tracepoint(event.attr))
    throw Refused(missing_right(-1, "for tracepoints"));
  const bool is_of_kernel = event.attr.exclude_user != 0;
  if (error != ENOSYS && !is_of_kernel && perf_event_paranoid() <= 2)
    throw Refused("the target belongs to another user: this needs root or CAP_PERFMON");
  throw Refused(missing_right(is_of_kernel ? 1 : 2, "to record your own processes"));
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
