// SPDX-License-Identifier: MIT
#include "recording/ptrace/thread_registry.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "recording/stream/whole_stream.h"

using namespace pe::recording;

BOOST_AUTO_TEST_SUITE(thread_registry)

namespace {

void await_signal() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  ::sigaddset(&wanted, SIGUSR1);
  int signal = 0;
  ::sigwait(&wanted, &signal);  // a debugger does not see signals that are taken so
}

/// A process that forks when it gets SIGUSR1.  The child ends when it gets one, and then both do.
pid_t start_forking() {
  sigset_t wanted, before;
  ::sigemptyset(&wanted);
  ::sigaddset(&wanted, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &wanted, &before);
  const pid_t pid = ::fork();
  if (pid != 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return pid;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  await_signal();
  const pid_t child = ::fork();
  if (child != 0)
    ::waitpid(child, nullptr, 0);
  else
    await_signal();
  ::_exit(0);
}

/// Handles stops, none of which may be one that we asked for, until `is_done`.
template <typename IsDone>
void handle_until(ThreadRegistry& registry, const IsDone& is_done) {
  const std::uint64_t until_ns = pe::monotonic_ns() + 60 * pe::kNsPerSecond;
  while (!is_done() && pe::monotonic_ns() < until_ns) {
    BOOST_REQUIRE(registry.next_stopped() == nullptr);
    std::this_thread::yield();
  }
  BOOST_REQUIRE(is_done());
}

}  // namespace

// Threads that are recorded in turn are asked to stop while they wait for a CPU.  If such a thread
// then forks, it stops for that only.
BOOST_AUTO_TEST_CASE(a_thread_that_forks_before_it_stops_is_asked_again_and_so_is_its_child) {
  std::vector<std::string> notes;
  const Request request;
  EngineRing ring(1 << 20);
  EngineRecords records(ring, engine_event(request, notes));
  const StopTimes times(pe::kNsPerSecond);
  pe::WaitedElsewhere state;
  ThreadRegistry registry(times, records, state);
  const pid_t pid = start_forking();
  registry.attach({.processes = {pid}});
  BOOST_REQUIRE(registry.find(pid) != nullptr);
  registry.find(pid)->state = TracedThread::State::kAsked;
  ::kill(pid, SIGUSR1);
  handle_until(registry, [&] { return registry.threads().size() == 2; });
  for (const auto& [tid, thread] : registry.threads()) {
    BOOST_TEST((thread.state == TracedThread::State::kRunning), "thread " << tid);
    BOOST_TEST(thread.pid == tid);
    if (tid != pid)
      ::kill(tid, SIGUSR1);
  }
  handle_until(registry, [&] { return registry.threads().empty(); });  // nothing holds them
}

// A thread is asked to stop if it may be due.  Time that counted twice stopped it in vain.
BOOST_AUTO_TEST_CASE(time_that_the_kernel_has_counted_is_not_added_again) {
  constexpr std::uint64_t kMs = 1'000'000;
  TracedThread thread{.files = {::getpid(), ::gettid()}, .credit = CpuCredit(10 * kMs)};
  thread.seen = {.on_cpu_ns = 100 * kMs, .waited_ns = 7 * kMs};
  thread.set_exact(1000 * kMs);
  BOOST_TEST(thread.unseen_ns(1000 * kMs) == 0u);
  BOOST_TEST(thread.unseen_ns(1009 * kMs) == 9 * kMs);
  thread.seen = {.on_cpu_ns = 104 * kMs, .waited_ns = 9 * kMs};
  BOOST_TEST(thread.unseen_ns(1009 * kMs) == 3 * kMs);
  BOOST_TEST(thread.unseen_ns(1005 * kMs) == 0u);  // clocks differ
}

BOOST_AUTO_TEST_SUITE_END()
