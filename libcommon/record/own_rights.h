// What this process may do.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::record {

/// Numbers of capabilities(7), linux/capability.h.
enum class Capability : std::uint8_t {
  kDacReadSearch = 2,
  kKill = 5,
  kSysPtrace = 19,
  kSysAdmin = 21,
  kSyslog = 34,
  kPerfmon = 38,
  kBpf = 39,
};

/// Is it in effect, of this process?
bool has_capability(Capability capability);

/// What a recorder keeps of its rights once all that it needs is open, whatever it reads from then
/// on: to look into processes and their files, to signal its command; and with
/// `uses_bpf` to give programs in the kernel more tables.  Gives up the rest for good, of this
/// thread and those that it starts, and the chance to get it back by execve(2).  Throws Error.
void keep_rights_to_record(bool uses_bpf);

/// Whether perf_event_open(2) works at all: for the time that we ourselves run, in user space.  0,
/// or errno.
int try_own_counter();

/// The seccomp mode of this process: 0 none, 1 strict, 2 a filter.
int seccomp_mode();

}  // namespace pe::record
