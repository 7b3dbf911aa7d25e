// A library that a running program loads: see workload.cpp, plugin.
// SPDX-License-Identifier: MIT
#include <ctime>

extern "C" __attribute__((noinline)) void plugin_spin(double seconds) {
  static volatile unsigned long sink;
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const double until =
      static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 + seconds;
  do {
    for (int i = 0; i < 40000; ++i)
      sink = sink + 1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 < until);
}
