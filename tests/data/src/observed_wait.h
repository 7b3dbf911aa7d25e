// A wait of a thread, as the program itself measures it.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace {

constexpr long kMs = 1'000'000;

long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void pause_us(long us) {
  timespec left{0, us * 1000};
  while (nanosleep(&left, &left) != 0) {
  }
}
void pause_ms(long ms) { pause_us(ms * 1000); }

/// Waits of one thread, which another thread, or process, observes and ends.
class Observed {
 public:
  /// The waiting thread calls this right before a wait,
  void start() {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    switches_ = used.ru_nvcsw;
    started_ns_ = now_ns();
    tid_ = gettid();
  }
  /// this right after it,
  void end() { ended_ns_ = now_ns(); }
  /// and this when the other thread no longer uses this object.
  void add() {
    least_ns_ += release_ns_ - asleep_ns_;
    most_ns_ += ended_ns_ - started_ns_;
    tid_ = 0;
  }
  void say(const char* name) const {
    printf("%s %ld %ld\n", name, least_ns_ / 1000, most_ns_ / 1000);
    fflush(stdout);
  }

  /// When the other thread was about to end the last wait.
  [[nodiscard]] long release_ns() const { return release_ns_; }

  /// The other thread calls this to return when the first one sleeps,
  void await_sleep() {
    prctl(PR_SET_TIMERSLACK, 1UL);
    while (tid_ == 0 || !sleeps())
      pause_us(50);  // while the owner of a mutex with priority inheritance runs, others spin
    asleep_ns_ = now_ns();
  }
  /// this right before it ends the wait,
  void release() { release_ns_ = now_ns(); }
  /// or this if the wait ends by itself, at the earliest so long after its start.
  void release_after(long ms) { release_ns_ = started_ns_ + ms * kMs; }

 private:
  /// proc_pid_status(5): whether the thread sleeps, and has given up its CPU since start().
  bool sleeps() const {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", tid_.load());
    FILE* const status = fopen(path, "re");
    if (status == nullptr)
      return false;
    char line[256];
    char state = 0;
    long switches = 0;
    while (fgets(line, sizeof line, status) != nullptr) {
      sscanf(line, "State: %c", &state);
      sscanf(line, "voluntary_ctxt_switches: %ld", &switches);
    }
    fclose(status);
    return state == 'S' && switches > switches_;
  }

  std::atomic<pid_t> tid_ = 0;
  std::atomic<long> switches_ = 0;
  std::atomic<long> started_ns_ = 0, ended_ns_ = 0;
  std::atomic<long> asleep_ns_ = 0, release_ns_ = 0;
  std::atomic<long> least_ns_ = 0, most_ns_ = 0;
};

}  // namespace
