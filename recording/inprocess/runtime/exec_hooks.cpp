// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/exec_hooks.h"

#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>

#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/carried.h"
#include "recording/inprocess/runtime/own_memory.h"
#include "recording/inprocess/runtime/real_functions.h"
#include "recording/inprocess/runtime/settings_text.h"

namespace pe::inprocess {
namespace {

#define PE_STARTS_PROGRAMS(of) \
  of(execve) of(execvpe) of(fexecve) of(execveat) of(posix_spawn) of(posix_spawnp)

struct ExecFunctions {
  PE_REAL_FUNCTIONS(PE_STARTS_PROGRAMS)
};
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit ExecFunctions exec_functions{};
constinit Carried carried{};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

const ExecFunctions& real_exec() noexcept { return found(exec_functions); }

/// Calls `exec`.  If it fails, restores the process's state.
template <typename Exec>
int try_exec(Exec exec) noexcept {
  const bool began = begin_exec();
  const int result = exec();
  const KeepErrno keep;
  fail_exec(began);
  return result;
}

}  // namespace

void prepare_exec_hooks(const char* const* environment, std::string_view name) noexcept {
  real_exec();
  Dl_info own{};
  if (::dladdr(&carried, &own) != 0 && own.dli_fname != nullptr)
    carried.set_library(own.dli_fname);
  carried.set_variable(find_variable(environment, name));
}

}  // namespace pe::inprocess

using namespace pe::inprocess;

// NOLINTBEGIN(bugprone-macro-parentheses): names
/// Defines `into`, the environment for the started program, in the frame of the hook.
#define PE_COMPLETE(is_followed, is_sanitized_one, environment, into)                             \
  char* const* into = environment;                                                                \
  const bool stays_out = carried.is_set() && !takes_any_order(environment) && (is_sanitized_one); \
  const std::size_t room = stays_out       ? carried.room_without(environment)                    \
                           : (is_followed) ? carried.room_for(environment)                        \
                                           : 0;                                                   \
  if (room > 0 && stays_out)                                                                      \
    into = carried.without_library(environment, alloca(room));                                    \
  else if (room > 0)                                                                              \
    into = carried.complete(environment, alloca(room));                                           \
  if (stays_out)                                                                                  \
    leave_out();

/// Defines `into`, an array of the arguments of an execl*() function, in the frame of that
/// function.  `argument` is the first.  Afterwards `list` is after the NULL.
#define PE_COLLECT(list, argument, into)                                  \
  std::size_t count = 1;                                                  \
  va_start(list, argument);                                               \
  while (va_arg(list, char*) != nullptr)                                  \
    ++count;                                                              \
  va_end(list);                                                           \
  auto** into = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
  into[0] = const_cast<char*>(argument);                                  \
  va_start(list, argument);                                               \
  for (std::size_t i = 1; i <= count; ++i)                                \
    into[i] = va_arg(list, char*);
// NOLINTEND(bugprone-macro-parentheses)

// NOLINTBEGIN(cert-dcl50-cpp,cppcoreguidelines-pro-type-const-cast,clang-analyzer-valist.*)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
PE_HOOK int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  PE_COMPLETE(follows_exec(), is_sanitized(AT_FDCWD, path), environment, all)
  return try_exec([=] { return real_exec().execve(path, arguments, all); });
}
PE_HOOK int execv(const char* path, char* const* arguments) noexcept {
  return execve(path, arguments, environ);
}
PE_HOOK int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  PE_COMPLETE(follows_exec(), is_sanitized_command(file), environment, all)
  return try_exec([=] { return real_exec().execvpe(file, arguments, all); });
}
PE_HOOK int execvp(const char* file, char* const* arguments) noexcept {
  return execvpe(file, arguments, environ);
}
PE_HOOK int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  PE_COMPLETE(follows_exec(), is_sanitized(fd), environment, all)
  return try_exec([=] { return real_exec().fexecve(fd, arguments, all); });
}
PE_HOOK int execveat(int fd, const char* path, char* const* arguments, char* const* environment,
                     int flags) noexcept {
  PE_COMPLETE(follows_exec(), is_sanitized(fd, path), environment, all)
  return try_exec([=] { return real_exec().execveat(fd, path, arguments, all, flags); });
}
PE_HOOK int execl(const char* path, const char* argument, ...) noexcept {
  va_list list;
  PE_COLLECT(list, argument, arguments)
  va_end(list);
  return execv(path, arguments);
}
PE_HOOK int execlp(const char* file, const char* argument, ...) noexcept {
  va_list list;
  PE_COLLECT(list, argument, arguments)
  va_end(list);
  return execvp(file, arguments);
}
PE_HOOK int execle(const char* path, const char* argument, ...) noexcept {
  va_list list;
  PE_COLLECT(list, argument, arguments)
  char** environment = va_arg(list, char**);
  va_end(list);
  return execve(path, arguments, environment);
}

// NOLINTBEGIN(readability-function-size): theirs
PE_HOOK int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const* arguments,
                        char* const* environment) {
  PE_COMPLETE(follows_spawn(), is_sanitized(AT_FDCWD, path), environment, all)
  return real_exec().posix_spawn(pid, path, actions, attributes, arguments, all);
}
PE_HOOK int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                         const posix_spawnattr_t* attributes, char* const* arguments,
                         char* const* environment) {
  PE_COMPLETE(follows_spawn(), is_sanitized_command(file), environment, all)
  return real_exec().posix_spawnp(pid, file, actions, attributes, arguments, all);
}
// NOLINTEND(readability-function-size)
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(cert-dcl50-cpp,cppcoreguidelines-pro-type-const-cast,clang-analyzer-valist.*)

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
