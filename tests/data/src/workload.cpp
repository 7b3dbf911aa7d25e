// A program whose profile is known.
//
// usage: workload shares|lazy|recursion|threads|fork|plugin=FILE SECONDS
//
//   shares     50, 30 and 20 % of CPU time in fifty(), thirty(), twenty(), below work()
//   lazy       the same, asleep for four fifths of the time
//   recursion  spins below twenty calls of dive()
//   threads    a thread "left" below go_left() and one "right" below go_right(), 50 % each
//   fork       a child runs this program again (shares) while the parent waits
//   plugin     at the end of standard input loads FILE and spins in its plugin_spin()
//
// Time is the thread's own CPU time, so a busy machine changes nothing.
// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>

#define NOINLINE __attribute__((noinline))

namespace {

volatile std::uint64_t sink;  // the compiler cannot optimize away writes to it

std::uint64_t cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// Reads the clock only once in about 100 microseconds, because these system calls would appear in
// the profile.
#define SPIN_FOR(microseconds)                                                   \
  for (const std::uint64_t until = cpu_us() + (microseconds); cpu_us() < until;) \
    for (int i = 0; i < 40000; ++i)                                              \
  sink = sink + 1

}  // namespace

// Each function does something after its loop, so that no call becomes a jump.
NOINLINE void fifty(std::uint64_t us) {
  SPIN_FOR(us);
  sink = 1;
}
NOINLINE void thirty(std::uint64_t us) {
  SPIN_FOR(us);
  sink = 2;
}
NOINLINE void twenty(std::uint64_t us) {
  SPIN_FOR(us);
  sink = 3;
}

NOINLINE void work(double seconds) {
  const std::uint64_t until = cpu_us() + static_cast<std::uint64_t>(seconds * 1e6);
  while (cpu_us() < until) {
    fifty(10000);
    thirty(6000);
    twenty(4000);
  }
  sink = 4;
}

NOINLINE void work_lazily(double seconds) {
  constexpr timespec kNap{0, 80'000'000};
  for (const std::uint64_t until = cpu_us() + static_cast<std::uint64_t>(seconds * 1e6);
       cpu_us() < until;) {
    work(0.02);
    nanosleep(&kNap, nullptr);
  }
  sink = 8;
}

NOINLINE void dive(int levels, double seconds) {
  if (levels > 1)
    dive(levels - 1, seconds);
  else
    SPIN_FOR(static_cast<std::uint64_t>(seconds * 1e6));
  sink = 5;
}

NOINLINE void go_left(double seconds) {
  SPIN_FOR(static_cast<std::uint64_t>(seconds * 1e6));
  sink = 6;
}
NOINLINE void go_right(double seconds) {
  SPIN_FOR(static_cast<std::uint64_t>(seconds * 1e6));
  sink = 7;
}

NOINLINE void two_threads(double seconds) {
  std::thread left([=] {
    pthread_setname_np(pthread_self(), "left");
    go_left(seconds);
  });
  std::thread right([=] {
    pthread_setname_np(pthread_self(), "right");
    go_right(seconds);
  });
  left.join();
  right.join();
}

NOINLINE int run_again(const char* self, const char* seconds) {
  const pid_t child = fork();
  if (child == 0) {
    execl(self, "workload", "shares", seconds, nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

NOINLINE int use_plugin(const char* file, double seconds) {
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  void* plugin = dlopen(file, RTLD_NOW);
  auto* spin = plugin == nullptr ? nullptr
                                 : reinterpret_cast<void (*)(double)>(dlsym(plugin, "plugin_spin"));
  if (spin == nullptr) {
    std::fprintf(stderr, "workload: %s\n", dlerror());
    return 1;
  }
  spin(seconds);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr,
                 "usage: workload shares|lazy|recursion|threads|fork|plugin=FILE SECONDS\n");
    return 2;
  }
  const std::string mode = argv[1];
  const double seconds = std::atof(argv[2]);
  if (mode == "shares")
    work(seconds);
  else if (mode == "lazy")
    work_lazily(seconds);
  else if (mode == "recursion")
    dive(20, seconds);
  else if (mode == "threads")
    two_threads(seconds);
  else if (mode == "fork")
    return run_again("/proc/self/exe", argv[2]);
  else if (mode.starts_with("plugin="))
    return use_plugin(mode.c_str() + std::strlen("plugin="), seconds);
  else
    return 2;
  return 0;
}
