// SPDX-License-Identifier: MIT
#include "recording/stream/unsampled.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <ctime>

BOOST_AUTO_TEST_SUITE(unsampled)

using pe::recording::describe_unsampled;
using pe::recording::SampledClock;
using pe::recording::Target;
using pe::recording::TargetTime;

namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kPeriodNs = 10'000'000;
constexpr SampledClock kOfThreads{.period_ns = kPeriodNs, .kind = SampledClock::Kind::kOfThreads};
constexpr SampledClock kOfCpus{.period_ns = kPeriodNs, .kind = SampledClock::Kind::kOfCpus};

std::uint64_t own_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kSecondNs +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void use(std::uint64_t ns) {
  for (const std::uint64_t end = own_ns() + ns; own_ns() < end;)
    ;
}

/// A child that uses so much CPU time.
pid_t fork_child(std::uint64_t ns) {
  const pid_t child = ::fork();
  if (child != 0)
    return child;
  use(ns);
  ::_exit(0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(time_that_samples_represent_is_not_reported) {
  BOOST_TEST(describe_unsampled({kOfThreads, 200 * kPeriodNs}, 2 * kSecondNs) == "");
  BOOST_TEST(describe_unsampled({kOfThreads, 203 * kPeriodNs}, 2 * kSecondNs) == "");
  BOOST_TEST(describe_unsampled({kOfThreads, 3 * kPeriodNs}, 0) == "");
}

BOOST_AUTO_TEST_CASE(the_ends_of_threads_are_not_reported) {
  BOOST_TEST(describe_unsampled({kOfThreads, 191 * kPeriodNs}, 2 * kSecondNs) == "");
  BOOST_TEST(describe_unsampled({kOfThreads, 0}, 90'000'000) == "");
}

BOOST_AUTO_TEST_CASE(time_without_samples_is_reported_with_all_and_its_cause) {
  const std::string all =
      describe_unsampled({{.period_ns = 10'101'010}, 20'202'020}, 2'330'000'000);
  BOOST_TEST(all.starts_with("2.31 of 2.33 s CPU time without samples of threads that run for "
                             "less than one period (10.1 ms), in switches between threads"),
             all);
  BOOST_TEST(describe_unsampled({kOfThreads, 189 * kPeriodNs}, 2 * kSecondNs) != "");
}

// 200 periods: chance alone takes up to 3 times the root of 200 samples away, 42.
BOOST_AUTO_TEST_CASE(the_chance_of_samples_of_whole_cpus_is_not_reported) {
  BOOST_TEST(describe_unsampled({kOfCpus, 158 * kPeriodNs}, 2 * kSecondNs) == "");
  BOOST_TEST(describe_unsampled({kOfCpus, 157 * kPeriodNs}, 2 * kSecondNs) ==
             "0.43 of 2.00 s CPU time without samples, because the timers of its CPUs fired late: "
             "interrupts were off, as when threads wake others and wait, or a host held the CPU; "
             "such code has too few samples");
}

// The target had 2 of 3 seconds: the deviation is the root of 200 / 3, and three of these are 24.
BOOST_AUTO_TEST_CASE(there_is_less_chance_if_the_target_has_most_of_the_cpus) {
  const auto said = [](std::uint64_t samples, std::uint64_t cpus_ns) {
    return describe_unsampled({.clock = kOfCpus, .ns = samples * kPeriodNs, .cpus_ns = cpus_ns},
                              2 * kSecondNs);
  };
  BOOST_TEST(said(176, 3 * kSecondNs) == "");
  BOOST_TEST(said(175, 3 * kSecondNs) != "");
  BOOST_TEST(said(191, kSecondNs) == "");  // 5 % stay unreported, and never more than that
  BOOST_TEST(said(189, kSecondNs) != "");
}

BOOST_AUTO_TEST_CASE(a_host_is_the_cause_only_if_the_kernel_counts_that) {
  const auto cause = [](std::uint64_t stolen_ns) {
    return describe_unsampled({.clock = kOfCpus, .ns = kSecondNs, .stolen_ns = stolen_ns},
                              2 * kSecondNs);
  };
  BOOST_TEST(cause(kSecondNs / 2).ends_with("record when the host is less busy"));
  BOOST_TEST(cause(kSecondNs / 2 - 1).ends_with("such code has too few samples"));
}

BOOST_AUTO_TEST_CASE(deep_stacks_are_a_cause_if_their_walks_took_long) {
  const auto cause = [](std::uint64_t walked_ns) {
    return describe_unsampled({.clock = kOfCpus, .ns = kSecondNs, .walked_ns = walked_ns},
                              2 * kSecondNs);
  };
  BOOST_TEST(cause(kSecondNs / 4)
                 .ends_with("fired late: the kernel walks each stack for about 2.5 ms, so lower "
                            "--freq"));
  BOOST_TEST(cause(kSecondNs / 4 - 1).find("the kernel walks") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_timers_of_ticks_miss_is_reported_with_the_programs) {
  const SampledClock ticks{.period_ns = 4'000'000, .kind = SampledClock::Kind::kOfTicks};
  constexpr const char* kMissed =
      "0.90 of 1.00 s CPU time without samples of threads that run for less than one period (4 "
      "ms), or of programs without the library (static, set-user-ID)";
  BOOST_TEST(describe_unsampled({ticks, kSecondNs / 10}, kSecondNs) ==
             std::string(kMissed) + ": use --engine ptrace");
  BOOST_TEST(describe_unsampled({ticks, kSecondNs / 10, 300}, kSecondNs) ==
             std::string(kMissed) +
                 "; 300 programs and forked processes without samples: use --engine "
                 "ptrace");
}

BOOST_AUTO_TEST_CASE(late_stops_are_the_cause_where_threads_are_stopped) {
  const SampledClock stops{.period_ns = 1'000'000, .kind = SampledClock::Kind::kOfStops};
  BOOST_TEST(describe_unsampled({stops, kSecondNs / 4}, kSecondNs) ==
             "0.75 of 1.00 s CPU time without samples, because threads were stopped too late: "
             "use --engine perf or bpf, or record when the machine is less busy");
  BOOST_TEST(describe_unsampled({stops, kSecondNs}, kSecondNs).empty());
}

BOOST_AUTO_TEST_CASE(the_time_of_a_process_is_what_the_scheduler_counts) {
  const std::uint64_t before_ns = own_ns();
  TargetTime time(Target{.processes = {::getpid()}});
  const std::uint64_t begun_ns = own_ns();
  use(20'000'000);
  const std::uint64_t used_ns = own_ns();
  time.look();
  BOOST_TEST(time.used_ns() >= used_ns - begun_ns);
  BOOST_TEST(time.used_ns() <= own_ns() - before_ns);
}

// The test has one thread: its time is that of the process.
BOOST_AUTO_TEST_CASE(the_time_of_a_thread_is_what_the_scheduler_counts) {
  const std::uint64_t before_ns = own_ns();
  TargetTime time(Target{.threads = {::gettid()}});
  const std::uint64_t begun_ns = own_ns();
  use(20'000'000);
  const std::uint64_t used_ns = own_ns();
  time.look();
  // The file lags behind a running thread by a tick.
  const std::uint64_t tick_ns = kSecondNs / 100;
  BOOST_TEST(time.used_ns() + tick_ns >= used_ns - begun_ns);
  BOOST_TEST(time.used_ns() <= own_ns() - before_ns + tick_ns);
}

// /proc/PID/stat counts their user and their system time in ticks, rounded down.
BOOST_AUTO_TEST_CASE(children_that_were_waited_for_are_counted) {
  const std::uint64_t tick_ns = kSecondNs / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  TargetTime time(Target{.processes = {::getpid()}});
  ::waitpid(fork_child(5 * tick_ns), nullptr, 0);
  time.look();
  BOOST_TEST(time.used_ns() >= 3 * tick_ns);
}

/// Of a command that is a child with a child, both of which still run.
BOOST_AUTO_TEST_CASE(the_time_of_descendants_that_still_run_counts_at_the_end) {
  constexpr std::uint64_t kUsedNs = 20'000'000;
  int used[2] = {}, end[2] = {};
  BOOST_REQUIRE(::pipe(used) == 0);
  BOOST_REQUIRE(::pipe(end) == 0);
  char byte = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(end[1]);
    const bool is_child = ::fork() != 0;
    if (!is_child) {
      use(kUsedNs);
      (void)!::write(used[1], &byte, 1);
    }
    (void)!::read(end[0], &byte, 1);  // until the test has closed its end
    ::_exit(0);
  }
  TargetTime time(Target{.processes = {child}, .is_command = true});
  (void)!::read(used[0], &byte, 1);
  time.check_last();
  BOOST_TEST(time.used_ns() >= kUsedNs);
  for (const int fd : {used[0], used[1], end[0], end[1]})
    ::close(fd);
  ::waitpid(child, nullptr, 0);
}

BOOST_AUTO_TEST_CASE(children_of_before_are_not_counted) {
  const std::uint64_t before_ns = own_ns();
  const pid_t child = fork_child(300'000'000);
  TargetTime time(Target{.processes = {::getpid()}});
  ::waitpid(child, nullptr, 0);
  time.look();
  BOOST_TEST(time.used_ns() <= own_ns() - before_ns);
}

/// A shell may execute a recorder after other commands, whose times are then its children's.
BOOST_AUTO_TEST_CASE(children_of_before_a_command_are_not_counted) {
  constexpr std::uint64_t kUsedNs = 300'000'000;
  ::waitpid(fork_child(kUsedNs), nullptr, 0);
  const pid_t command = fork_child(0);
  TargetTime time(Target{.processes = {command}, .is_command = true});
  ::waitpid(command, nullptr, 0);
  time.check_last();
  BOOST_TEST(time.used_ns() < kUsedNs / 2);
}

BOOST_AUTO_TEST_CASE(a_process_that_has_ended_keeps_what_was_seen_of_it) {
  int go[2] = {};
  BOOST_REQUIRE(::pipe(go) == 0);
  constexpr std::uint64_t kUsedNs = 20'000'000;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(go[1]);
    char byte = 0;
    (void)!::read(go[0], &byte, 1);
    use(kUsedNs);
    ::_exit(0);
  }
  TargetTime time(Target{.processes = {child}});
  ::close(go[0]);
  ::close(go[1]);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  time.look();  // a zombie
  const std::uint64_t seen_ns = time.used_ns();
  ::waitpid(child, nullptr, 0);
  time.look();
  BOOST_TEST(seen_ns >= kUsedNs);
  BOOST_TEST(time.used_ns() == seen_ns);
}

BOOST_AUTO_TEST_SUITE_END()
