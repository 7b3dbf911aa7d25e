// Adjusts the program's requests for its whole address space.  The program does not know that our
// mappings enlarge it.
//
// A limit on addresses (RLIMIT_AS) leaves our mappings out.  mlockall(2) would fill 24 GiB of
// memory.  So this one locks all mappings but ours one by one.  Future mappings are locked page by
// page, when they are touched.
// SPDX-License-Identifier: MIT
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "malloctrace/heap/layout.h"
#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/process.h"
#include "malloctrace/preload/tracer.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/inprocess/runtime/real_functions.h"
#include "recording/inprocess/runtime/shared_file.h"

namespace pe::malloctrace {
namespace {

constexpr rlim_t kInfinity = RLIM_INFINITY;

/// Adds our file, and our memory outside it: the shadow of a heap is an eighth of the heap.
rlim_t with_ours(rlim_t limit) noexcept {
  constexpr rlim_t kTables = rlim_t{1} << 30;
  constexpr rlim_t kShadowPart = 4;
  const rlim_t ours = heap::kFileBytes + kTables + limit / kShadowPart;
  return limit > kInfinity - ours ? kInfinity : limit + ours;
}

long set_limit(int pid, int resource, const rlimit* wanted, rlimit* before) noexcept {
  return ::syscall(SYS_prlimit64, pid, resource, wanted, before);
}

/// Sets the limit on addresses that the program wants, plus our share.  If the hard limit does not
/// allow that, sets as much as it allows: the program then has less than it expects.
long set_addresses(int pid, const rlimit& wanted, rlimit* before) noexcept {
  rlimit now{};
  const bool is_sane = wanted.rlim_cur <= wanted.rlim_max;
  if (!is_sane || set_limit(0, RLIMIT_AS, nullptr, &now) != 0)
    return set_limit(pid, RLIMIT_AS, &wanted, before);
  rlimit given{with_ours(wanted.rlim_cur), with_ours(wanted.rlim_max)};
  if (wanted.rlim_max <= now.rlim_max)
    given.rlim_max = std::min(given.rlim_max, now.rlim_max);
  given.rlim_cur = std::min(given.rlim_cur, given.rlim_max);
  if (given.rlim_cur < with_ours(wanted.rlim_cur))
    inprocess::report_line(
        "malloctrace",
        "limits its address space (RLIMIT_AS), and its hard limit leaves no room for the library");
  return set_limit(pid, RLIMIT_AS, &given, before);
}

int change_limit(int pid, int resource, const rlimit* wanted, rlimit* before) noexcept {
  const bool is_own = pid == 0 || pid == ::getpid();
  const bool is_ours = resource == RLIMIT_AS && wanted != nullptr && is_own && is_traced();
  return static_cast<int>(is_ours ? set_addresses(pid, *wanted, before)
                                  : set_limit(pid, resource, wanted, before));
}

bool is_to_be_locked(const stream::MapsLine& map) noexcept {
  return map.readable && !map.path.starts_with("[v") && !is_tracers_memory(map.start, map.end);
}

/// Locks like mlockall(2), which ignores pages that cannot be filled (files that end before their
/// mapping).
int lock_all(int flags) noexcept {
  inprocess::MapsRoom room;
  int error = 0;
  const auto lock = [&](const stream::MapsLine& map) {
    if (!is_to_be_locked(map))
      return true;
    const std::uint64_t bytes = map.end - map.start;
    if (::syscall(SYS_mlock2, map.start, bytes, MLOCK_ONFAULT) != 0)
      error = errno;
    else if ((flags & MCL_ONFAULT) == 0)
      ::syscall(SYS_mlock2, map.start, bytes, 0);
    // The mapping may be gone in the meantime.
    if (error == ENOMEM && ::syscall(SYS_mincore, map.start, 1, room.data()) != 0)
      error = 0;
    return error == 0;
  };
  if ((flags & MCL_CURRENT) != 0)
    inprocess::for_each_own_mapping(room, lock);
  if (error == 0 && (flags & MCL_FUTURE) != 0 &&
      ::syscall(SYS_mlockall, MCL_FUTURE | MCL_ONFAULT) != 0)
    error = errno;
  if (error == 0)
    return 0;
  errno = error;
  return -1;
}

}  // namespace
}  // namespace pe::malloctrace

using namespace pe::malloctrace;

// Defined by their names in the object file: the headers declare several types for one name.
int hook_setrlimit(int resource, const rlimit* wanted) noexcept PE_HOOK_OF("setrlimit");
int hook_setrlimit64(int resource, const rlimit* wanted) noexcept PE_HOOK_OF("setrlimit64");
int hook_prlimit(int pid, int resource, const rlimit* wanted, rlimit* before) noexcept
    PE_HOOK_OF("prlimit");
int hook_prlimit64(int pid, int resource, const rlimit* wanted, rlimit* before) noexcept
    PE_HOOK_OF("prlimit64");
int hook_mlockall(int flags) noexcept PE_HOOK_OF("mlockall");

int hook_setrlimit(int resource, const rlimit* wanted) noexcept {
  return change_limit(0, resource, wanted, nullptr);
}
int hook_setrlimit64(int resource, const rlimit* wanted) noexcept {
  return change_limit(0, resource, wanted, nullptr);
}
int hook_prlimit(int pid, int resource, const rlimit* wanted, rlimit* before) noexcept {
  return change_limit(pid, resource, wanted, before);
}
int hook_prlimit64(int pid, int resource, const rlimit* wanted, rlimit* before) noexcept {
  return change_limit(pid, resource, wanted, before);
}

int hook_mlockall(int flags) noexcept {
  constexpr int kKnown = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;
  const bool is_plain = (flags & ~kKnown) == 0 && (flags & (MCL_CURRENT | MCL_FUTURE)) != 0;
  if (is_plain && is_traced())
    return lock_all(flags);
  return static_cast<int>(::syscall(SYS_mlockall, flags));
}
