// SPDX-License-Identifier: MIT
#include "recording/target_activity.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdint>

#include "recording/thread_state.h"

using pe::recording::process_cpu_ns;
using pe::recording::TargetActivity;

namespace {

constexpr std::uint64_t kNs = 5'000'000;

/// A process that runs until it is killed.
class Busy {
 public:
  Busy() : pid_(::fork()) {
    while (pid_ == 0)
      asm volatile("");  // a loop without side effects may be left out
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  Busy(Busy&&) = delete;
  Busy& operator=(Busy&&) = delete;
  ~Busy() { end(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void run_until(std::uint64_t cpu_ns) const {
    while (process_cpu_ns(pid_).value() < cpu_ns)
      ::usleep(1000);
  }
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(target_activity)

BOOST_AUTO_TEST_CASE(time_of_a_command_after_the_recording_does_not_count) {
  Busy busy;
  TargetActivity activity({.processes = {busy.pid()}, .is_command = true});
  busy.run_until(kNs);
  activity.end();
  const std::uint64_t used_ns = activity.used().own_ns;
  BOOST_TEST(used_ns >= kNs);
  busy.run_until(used_ns + kNs);
  busy.end();
  BOOST_TEST(activity.used().own_ns == used_ns);
}

BOOST_AUTO_TEST_CASE(time_of_a_process_after_the_recording_does_not_count) {
  const Busy busy;
  TargetActivity activity({.processes = {busy.pid()}});
  busy.run_until(kNs);
  activity.end();
  const std::uint64_t used_ns = activity.used().own_ns;
  busy.run_until(used_ns + 2 * kNs);
  BOOST_TEST(activity.used().own_ns == used_ns);
}

BOOST_AUTO_TEST_CASE(a_command_that_has_ended_before_counts_as_a_whole) {
  Busy busy;
  const TargetActivity activity({.processes = {busy.pid()}, .is_command = true});
  busy.run_until(kNs);
  busy.end();
  BOOST_TEST(activity.used().own_ns >= kNs);
}

BOOST_AUTO_TEST_SUITE_END()
