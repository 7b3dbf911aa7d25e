// SPDX-License-Identifier: MIT
#include "recording/own_rights.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

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

}  // namespace pe::recording
