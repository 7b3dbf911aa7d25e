// Measures how much it costs a program to profile itself: it does the same work without and with
// sp_sigprof(3), in turn, in one process.
//
//     sigprof_cost [ROUNDS [DEPTH]]
//
// The work is a fixed number of additions below DEPTH frames of 200 bytes, about a second.  For
// each way of profiling it prints a row.  The row has the median over the rounds of how much more
// CPU time the thread used than in the work without profiling before.  Then come the interval that
// contains the true median with a probability of 95 % (order statistics), the CPU time of the
// library's thread, and the samples.  The stream goes to /dev/null.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <stackpipe/sigprof.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

volatile std::uint64_t sink;

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

[[gnu::noinline]] void work_below(unsigned depth) {  // NOLINT(misc-no-recursion): it is the point
  volatile char frame[150];
  frame[0] = 1;
  if (depth > 0) {
    work_below(depth - 1);
  } else {
    constexpr int kAdditions = 2'000'000'000;
    for (int i = 0; i < kAdditions; ++i)
      sink = sink + 1;
  }
  frame[1] = frame[0];
}

struct Way {
  std::string name;
  std::uint32_t hz, clock;
  std::vector<double> more_percent;
  double seconds = 0, own_seconds = 0;
  std::uint64_t samples = 0, lost = 0;
};

double timed(unsigned depth) {
  const double before = cpu_seconds();
  work_below(depth);
  return cpu_seconds() - before;
}

void measure(Way& way, unsigned depth, int fd) {
  const double without = timed(depth);
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  options.hz = way.hz;
  options.clock = way.clock;
  if (way.hz != 0 && sp_sigprof_start(&options, fd) != SP_SIGPROF_OK)
    std::exit(1);
  const double with = timed(depth);
  sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
  if (way.hz != 0)
    sp_sigprof_stop(&counts);
  way.more_percent.push_back(100 * (with / without - 1));
  way.seconds += with;
  way.own_seconds += static_cast<double>(counts.own_cpu_ns) / 1e9;
  way.samples += counts.samples;
  way.lost += counts.lost_samples;
}

void print(Way& way) {
  std::vector<double>& all = way.more_percent;
  std::ranges::sort(all);
  const auto n = static_cast<double>(all.size());
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - 0.98 * std::sqrt(n))));
  fmt::print("| {} | {:+.2f} % | {:+.2f} to {:+.2f} % | {:.2f} % | {:.0f} | {} |\n", way.name,
             all[all.size() / 2], all[low], all[all.size() - 1 - low],
             100 * way.own_seconds / way.seconds, static_cast<double>(way.samples) / way.seconds,
             way.lost);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
  const auto depth = static_cast<unsigned>(argc > 2 ? std::atoi(argv[2]) : 20);
  const int fd = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  std::vector<Way> ways{{"nothing, twice", 0, SP_SIGPROF_CPU, {}},
                        {"CPU time, 100 Hz", 100, SP_SIGPROF_CPU, {}},
                        {"CPU time, 1000 Hz", 1000, SP_SIGPROF_CPU, {}},
                        {"all time, 100 Hz", 100, SP_SIGPROF_WALL, {}},
                        {"all time, 1000 Hz", 1000, SP_SIGPROF_WALL, {}}};
  for (int round = 0; round < rounds; ++round)
    for (Way& way : ways)
      measure(way, depth, fd);
  fmt::print(
      "| | the thread's CPU time | 95 % sure | library's thread | samples a second | lost |\n");
  fmt::print("|---|---:|---:|---:|---:|---:|\n");
  for (Way& way : ways)
    print(way);
  ::close(fd);
  return 0;
}
