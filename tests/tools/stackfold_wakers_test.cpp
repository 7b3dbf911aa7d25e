// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stream/records/record.h"
#include "support/stackfold.h"
#include "support/stream_builder.h"

using pe::testing::Result;
using pe::testing::StreamBuilder;

BOOST_AUTO_TEST_SUITE(stackfold_wakers)

namespace {

constexpr auto kUser = static_cast<std::uint64_t>(PERF_CONTEXT_USER);

/// Folds a stream that ends with its last round.
Result folded_with(const std::vector<std::string>& args, StreamBuilder stream) {
  return pe::testing::stackfold(args, stream.round().text());
}

}  // namespace

namespace {

/// Threads 1 and 3 wait at 0x200, which main (0x100) calls; thread 2 wakes them at 0x300.
struct Woken {
  static constexpr std::uint64_t kWait = 7, kWaker = 8, kEarlier = 9;

  Woken() {
    stream.event(kWait, "offcpu")
        .unit(kWait, "ns")
        .event(kWaker, pe::stream::kWakerEvent)
        .unit(kWaker, "ns")
        .event(kEarlier, pe::stream::kEarlierWakerEvent)
        .unit(kEarlier, "ns")
        .comm(0, 1, 1, "waits")
        .comm(0, 1, 3, "too")
        .comm(0, 2, 2, "wakes")
        .symbol({.id = 1, .name = "main", .module = "/bin/p"})
        .symbol({.id = 2, .name = "sleep", .module = "/bin/p"})
        .symbol({.id = 3, .name = "wake", .module = "/bin/q"})
        .location(1, 0x0ff, {1})
        .location(1, 0x200, {2})
        .location(2, 0x300, {3});
  }
  Woken& waker(std::uint64_t time_ns, std::uint32_t tid = 2, std::uint64_t id = kWaker) {
    stream.sample({.time_ns = time_ns,
                   .pid = tid,
                   .tid = tid,
                   .chain = {kUser, 0x300},
                   .id = id,
                   .period = 5000});
    return *this;
  }
  Woken& wait(std::uint64_t time_ns, std::uint32_t tid = 1) {
    stream.sample({.time_ns = time_ns,
                   .pid = 1,
                   .tid = tid,
                   .chain = {kUser, 0x200, 0x100},
                   .id = kWait,
                   .period = 2000});
    return *this;
  }
  std::string folded(const std::vector<std::string>& args = {}) {
    const auto r = folded_with(args, stream);
    BOOST_TEST(r.status == 0);
    return r.out;
  }

  StreamBuilder stream;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_waker_stands_upside_down_behind_the_wait_that_it_ended) {
  BOOST_TEST(Woken().waker(9).wait(9).folded() == "waits;main;sleep;--;wake;wakes 2\n");
}

BOOST_AUTO_TEST_CASE(what_an_interrupt_ended_has_no_thread_behind_it) {
  BOOST_TEST(Woken().waker(9, 0).wait(9).folded() ==
             "waits;main;sleep;--;[unknown];[interrupt] 2\n");
}

BOOST_AUTO_TEST_CASE(a_waker_of_another_time_is_not_the_waits) {
  BOOST_TEST(Woken().waker(8).wait(9).folded() == "waits;main;sleep 2\n");
  BOOST_TEST(Woken().wait(9).waker(10).folded() == "waits;main;sleep 2\n");
}

BOOST_AUTO_TEST_CASE(a_waker_is_that_of_the_next_wait_alone) {
  BOOST_TEST(Woken().waker(9).wait(9).wait(9, 3).folded() ==
             "too;main;sleep 2\nwaits;main;sleep;--;wake;wakes 2\n");
  BOOST_TEST(Woken().wait(9, 3).waker(9).wait(9).folded() ==
             "too;main;sleep 2\nwaits;main;sleep;--;wake;wakes 2\n");
}

BOOST_AUTO_TEST_CASE(the_waker_of_a_waker_follows_it) {
  constexpr auto kEarlier = Woken::kEarlier;
  BOOST_TEST(Woken().waker(9, 0, kEarlier).waker(9).wait(9).folded() ==
             "waits;main;sleep;--;wake;wakes;--;[unknown];[interrupt] 2\n");
  BOOST_TEST(Woken().waker(9, 0, kEarlier).waker(9).wait(9).folded({"--event", "offcpu-waker"}) ==
             "wakes;wake 5\n");
  BOOST_TEST(Woken().waker(8, 0, kEarlier).waker(9).wait(9).folded() ==
             "waits;main;sleep;--;wake;wakes 2\n");
}

BOOST_AUTO_TEST_CASE(no_more_than_four_wakers_follow_a_wait) {
  Woken woken;
  for (int i = 0; i < 5; ++i)
    woken.waker(9);
  BOOST_TEST(woken.wait(9).folded() == "waits;main;sleep;--;wake;wakes 2\n");
}

BOOST_AUTO_TEST_CASE(a_waker_whose_wait_is_not_there_is_no_stack) {
  BOOST_TEST(Woken().wait(8).waker(9).folded() == "waits;main;sleep 2\n");
}

BOOST_AUTO_TEST_CASE(a_waker_is_not_that_of_a_wait_behind_one_that_is_not_folded) {
  Woken woken;
  woken.stream.event(10, "cpu-clock");
  woken.waker(9);
  woken.stream.sample({.time_ns = 9, .pid = 1, .tid = 1, .chain = {kUser, 0x100}, .id = 10});
  BOOST_TEST(woken.wait(9).folded({"--event", "offcpu"}) == "waits;main;sleep 2\n");
}

namespace {

/// Thread 1 waits at 0x200 for the lock at 0x5000, which thread 2 releases at 0x300.
struct Locked {
  explicit Locked(std::string_view waker_event, std::string_view event = "offcpu",
                  std::string_view function = "pthread_mutex_lock") {
    stream.event(7, event, PERF_SAMPLE_ADDR)
        .unit(7, "ns")
        .event(8, waker_event, PERF_SAMPLE_ADDR)
        .unit(8, "ns")
        .comm(0, 1, 1, "waits")
        .comm(0, 1, 2, "holds")
        .symbol({.id = 1, .name = "work", .module = "/bin/p"})
        .symbol({.id = 2, .name = std::string(function), .module = "/bin/p"})
        .symbol({.id = 3, .name = "release", .module = "/bin/p"})
        .symbol({.id = 4, .name = "g_lock+0x10", .module = "/bin/p"})
        .location(1, 0x0ff, {1})
        .location(1, 0x200, {2})
        .location(1, 0x300, {3});
  }
  Locked& holder(std::uint32_t pid, std::uint32_t tid) {
    stream.sample({.time_ns = 9,
                   .pid = pid,
                   .tid = tid,
                   .chain = pid == 0 ? std::vector<std::uint64_t>{} : std::vector{kUser, 0x300UL},
                   .id = 8,
                   .period = 2000,
                   .data = 0});
    return *this;
  }
  std::string wait(std::uint64_t lock = 0x5000, std::uint16_t misc = 0) {
    stream.sample(
        {.time_ns = 9, .chain = {kUser, 0x200, 0x100}, .period = 2000, .misc = misc, .data = lock});
    return folded_with({}, stream).out;
  }

  StreamBuilder stream;
};

constexpr std::uint64_t kByEndOfThread = 1;

}  // namespace

BOOST_AUTO_TEST_CASE(a_lock_comes_before_the_stack_of_its_waker) {
  Locked locked("offcpu-waker");
  locked.stream.location(1, 0x5000, {4});
  BOOST_TEST(locked.holder(1, 2).wait() ==
             "waits;work;pthread_mutex_lock;[mutex g_lock+0x10];--;release;holds 2\n");
}

BOOST_AUTO_TEST_CASE(the_name_of_a_lock_is_not_of_the_kernel) {
  constexpr auto kKernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);
  constexpr std::uint64_t kSchedule = 0xffff'ffff'8100'0100;
  Locked locked("offcpu-waker");
  locked.stream.symbol({.id = 5, .flags = pe::stream::kSymbolKernel, .name = "schedule"})
      .location(pe::stream::kKernelPid, kSchedule, {5})
      .sample({.time_ns = 9,
               .chain = {kKernel, kSchedule, kUser, 0x200, 0x100},
               .period = 2000,
               .data = 0x5000});
  BOOST_TEST(folded_with({}, locked.stream).out ==
             "waits;work;pthread_mutex_lock;schedule;[mutex first waited for at work] 2\n");
}

BOOST_AUTO_TEST_CASE(the_stack_of_a_holder_comes_first) {
  BOOST_TEST(Locked("offcpu-holder").holder(1, 2).wait() ==
             "holds;release;--;[mutex first waited for at work];pthread_mutex_lock;work;waits 2\n");
}

BOOST_AUTO_TEST_CASE(a_held_lock_is_below_the_stack_that_waited_for_it) {
  BOOST_TEST(Locked("offcpu-waker", pe::stream::kHeldEvent).wait() ==
             "waits;work;pthread_mutex_lock;[mutex first waited for at work] 2\n");
}

BOOST_AUTO_TEST_CASE(only_mutexes_are_held_and_others_counted) {
  for (const char* function : {"sem_wait", "pthread_rwlock_wrlock"})
    BOOST_TEST(Locked("offcpu-waker", pe::stream::kHeldEvent, function).wait().empty());
  Locked waits("offcpu-waker", pe::stream::kHeldEvent, "pthread_cond_wait");
  BOOST_TEST(waits.wait().empty());
  const std::string message = folded_with({}, waits.stream).err;
  BOOST_TEST(message.find("1 sample left out that are not of mutexes") != message.npos);
}

BOOST_AUTO_TEST_CASE(a_timeout_and_a_signal_are_no_holders) {
  BOOST_TEST(Locked("offcpu-holder").holder(0, 1).wait() ==
             "[timeout];--;[mutex first waited for at work];pthread_mutex_lock;work;waits 2\n");
  BOOST_TEST(Locked("offcpu-holder").holder(0, 2).wait() ==
             "[signal];--;[mutex first waited for at work];pthread_mutex_lock;work;waits 2\n");
}

BOOST_AUTO_TEST_CASE(a_wait_without_an_end_has_no_holder) {
  BOOST_TEST(Locked("offcpu-holder").wait(0x5000, pe::stream::kMiscUnfinished) ==
             "waits;work;pthread_mutex_lock;[mutex first waited for at work];[still waiting] 2\n");
}

BOOST_AUTO_TEST_CASE(the_end_of_a_thread_is_not_a_part_of_the_address) {
  Locked locked("offcpu-holder");
  locked.stream.location(1, 0x5000, {4});
  BOOST_TEST(locked.holder(1, 2).wait(0x5000 | kByEndOfThread) ==
             "holds;release;--;[mutex g_lock+0x10];pthread_mutex_lock;work;waits 2\n");
}

BOOST_AUTO_TEST_CASE(wakers_can_be_folded_by_themselves) {
  BOOST_TEST(Woken().waker(9).wait(9).folded({"--event", std::string(pe::stream::kWakerEvent)}) ==
             "wakes;wake 5\n");
}

BOOST_AUTO_TEST_SUITE_END()
