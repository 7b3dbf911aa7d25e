// Programs that are begun by exec(3) inherit the process's timer (setitimer(2)), but not our
// handler: its first signal would kill them.  So it is stopped before.  The timers of threads end
// by themselves, and children of posix_spawn(3) inherit none. SPDX-License-Identifier: MIT
#include <alloca.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "preload/keep_errno.h"
#include "sampler/preload/real_functions.h"
#include "sampler/target/process.h"
#include "sampler/target/timers.h"

namespace pe::sampler {
namespace {

/// Stops the process's timer, and begins it again when it turns out that the process goes on.
class NoTimer {
 public:
  NoTimer() noexcept
      : has_stopped_(process.is_sampling && process.timer_kind == TimerKind::kProcess &&
                     is_own_process()) {
    if (has_stopped_)
      set_process_timer(0);
  }
  NoTimer(const NoTimer&) = delete;
  NoTimer(NoTimer&&) = delete;
  NoTimer& operator=(const NoTimer&) = delete;
  NoTimer& operator=(NoTimer&&) = delete;
  ~NoTimer() {
    constexpr std::uint64_t kSecondNs = 1'000'000'000;
    const preload::KeepErrno keep;
    if (has_stopped_)
      set_process_timer(kSecondNs / process.settings.hz);
  }

 private:
  bool has_stopped_;
};

}  // namespace
}  // namespace pe::sampler

using namespace pe::sampler;

#define PE_HOOK extern "C" __attribute__((visibility("default")))

// NOLINTBEGIN(bugprone-macro-parentheses): names
/// The arguments of a function execl*(), the first of which is `argument`, as an array in its
/// frame; `list` stands behind the NULL then.
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
  const NoTimer no_timer;
  return real().execve(path, arguments, environment);
}
PE_HOOK int execv(const char* path, char* const* arguments) noexcept {
  const NoTimer no_timer;
  return real().execve(path, arguments, environ);
}
PE_HOOK int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  const NoTimer no_timer;
  return real().execvpe(file, arguments, environment);
}
PE_HOOK int execvp(const char* file, char* const* arguments) noexcept {
  const NoTimer no_timer;
  return real().execvpe(file, arguments, environ);
}
PE_HOOK int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  const NoTimer no_timer;
  return real().fexecve(fd, arguments, environment);
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
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(cert-dcl50-cpp,cppcoreguidelines-pro-type-const-cast,clang-analyzer-valist.*)
