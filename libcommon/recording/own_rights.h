// What this process may do.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::recording {

/// Numbers of capabilities(7), linux/capability.h.
enum class Capability : std::uint8_t {
  kSysPtrace = 19,
  kSysAdmin = 21,
  kPerfmon = 38,
  kBpf = 39,
};

/// Is it in effect, of this process?
bool has_capability(Capability capability);

/// Whether perf_event_open(2) works at all: for the time that we ourselves run, in user space.  0,
/// or errno.
int try_own_counter();

/// The seccomp mode of this process: 0 none, 1 strict, 2 a filter.
int seccomp_mode();

}  // namespace pe::recording
