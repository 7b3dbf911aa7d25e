// SPDX-License-Identifier: MIT
#include "record/stream/taken_queue.h"

#include <poll.h>

#include <boost/test/unit_test.hpp>
#include <exception>
#include <new>

using pe::record::TakenQueue;
using pe::record::TakenSample;
using pe::record::TaskChange;

BOOST_AUTO_TEST_SUITE(taken_queue)

namespace {

bool is_readable(const TakenQueue& queue) {
  pollfd polled{queue.fd(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_comes_is_taken_in_order_and_wakes) {
  TakenQueue queue;
  BOOST_TEST(!is_readable(queue));
  queue.push(TakenSample{.pid = 1, .tid = 2, .time_ns = 10});
  queue.push(TaskChange{.kind = TaskChange::Kind::kExec, .pid = 1, .tid = 1, .time_ns = 11});
  BOOST_TEST(is_readable(queue));
  BOOST_TEST(queue.holds_exec_of(1));
  BOOST_TEST(!queue.holds_exec_of(2));
  const auto events = queue.take();
  BOOST_TEST_REQUIRE(events.size() == 2u);
  BOOST_TEST(std::get<TakenSample>(events[0]).tid == 2);
  BOOST_TEST(std::get<TaskChange>(events[1]).time_ns == 11u);
  BOOST_TEST(!is_readable(queue));
  BOOST_TEST(!queue.holds_exec_of(1));
}

BOOST_AUTO_TEST_CASE(a_full_queue_loses_samples_and_counts_them_but_no_change_of_tasks) {
  TakenQueue queue(100'000);
  for (int i = 0; i < 5; ++i)
    queue.push(TakenSample{.stack = std::vector<std::byte>(40'000)});
  queue.push(TaskChange{.kind = TaskChange::Kind::kEnded});
  BOOST_TEST(queue.lost() == 3u);
  BOOST_TEST(queue.take().size() == 3u);
  queue.push(TakenSample{.stack = std::vector<std::byte>(40'000)});
  BOOST_TEST(queue.take().size() == 1u);
  BOOST_TEST(queue.lost() == 3u);
}

BOOST_AUTO_TEST_CASE(who_takes_samples_and_cannot_go_on_wakes_who_writes_them_and_tells_why) {
  TakenQueue queue;
  queue.push(TakenSample{.pid = 1});
  queue.fail(std::make_exception_ptr(std::bad_alloc()));
  BOOST_TEST(is_readable(queue));
  BOOST_CHECK_THROW(queue.take(), std::bad_alloc);
}

BOOST_AUTO_TEST_SUITE_END()
