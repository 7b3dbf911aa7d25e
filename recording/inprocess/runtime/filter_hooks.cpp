// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/filter_hooks.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/own_memory.h"
#include "recording/inprocess/runtime/real_functions.h"

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
namespace pe::inprocess {
namespace {

#define PE_INSTALLS_FILTERS(of) of(prctl) of(syscall)

struct FilterFunctions {
  PE_REAL_FUNCTIONS(PE_INSTALLS_FILTERS)
};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit FilterFunctions filter_functions{};

const FilterFunctions& real_filter() noexcept { return found(filter_functions); }

/// Whether the program's memory is readable; true also if that cannot be found out.  Programs give
/// the kernel invalid addresses to find out what it knows.
bool is_readable(const void* memory, std::size_t bytes) noexcept {
  std::array<std::byte, 512> room;
  const auto avma = reinterpret_cast<std::uint64_t>(memory);
  for (std::size_t done = 0; done < bytes && may_copy();) {
    const std::size_t count = std::min(bytes - done, room.size());
    if (copy_own_memory(avma + done, {std::span(room).first(count), {}}) !=
        static_cast<std::int64_t>(count))
      return false;
    done += count;
  }
  return memory != nullptr;
}

/// `mode` is the argument of prctl(2), or else of seccomp(2), that selects what is set.
[[gnu::noinline]] void note_new_filter(bool is_prctl, unsigned long mode,
                                       unsigned long filter) noexcept {
  const KeepErrno keep;
  if (mode == (is_prctl ? SECCOMP_MODE_STRICT : SECCOMP_SET_MODE_STRICT))
    return note_strict_mode();
  if (mode != (is_prctl ? SECCOMP_MODE_FILTER : SECCOMP_SET_MODE_FILTER))
    return;
  const auto* program =
      reinterpret_cast<const sock_fprog*>(filter);  // NOLINT(performance-no-int-to-ptr)
  // The kernel refuses all others.
  if (is_readable(program, sizeof *program) && program->len <= BPF_MAXINSNS &&
      is_readable(program->filter, program->len * sizeof(sock_filter)))
    note_filter({program->filter, program->len});
}

}  // namespace

void prepare_filter_hooks() noexcept { real_filter(); }

}  // namespace pe::inprocess

using namespace pe::inprocess;

// The last call of each function is a jump (at -O2): with the program's arguments, and the stack
// pointer that the C library's function would have.
int hook_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
               unsigned long d) noexcept PE_HOOK_OF("prctl");
int hook_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
               unsigned long d) noexcept {
  if (option == PR_SET_SECCOMP)
    note_new_filter(true, a, b);
  return real_filter().prctl(option, a, b, c, d);
}

// NOLINTBEGIN(readability-function-size): theirs
long hook_syscall(long number, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                  unsigned long e, unsigned long f) noexcept PE_HOOK_OF("syscall");
long hook_syscall(long number, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                  unsigned long e, unsigned long f) noexcept {
  if (number == SYS_seccomp)
    note_new_filter(false, a, c);
  else if (number == SYS_prctl && a == PR_SET_SECCOMP)
    note_new_filter(true, b, c);
  return real_filter().syscall(number, a, b, c, d, e, f);
}
// NOLINTEND(readability-function-size)
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
