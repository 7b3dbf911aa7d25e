// SPDX-License-Identifier: MIT
#include "record/stream/held_taken.h"

#include <boost/test/unit_test.hpp>

#include "base/clock.h"

using pe::record::HeldTaken;
using pe::record::TakenQueue;
using pe::record::TakenSample;
using pe::record::TaskChange;

namespace {

/// The threads of what has been released, in its order, and whether times rise.
std::vector<pid_t> released(TakenQueue& queue) {
  std::vector<pid_t> tids;
  std::uint64_t last_ns = 0;
  for (const auto& event : queue.take())
    std::visit(
        [&](const auto& any) {
          tids.push_back(any.tid);
          BOOST_TEST(any.time_ns >= last_ns);
          last_ns = any.time_ns;
        },
        event);
  return tids;
}

using Tids = std::vector<pid_t>;

}  // namespace

BOOST_AUTO_TEST_SUITE(held_taken)

BOOST_AUTO_TEST_CASE(what_was_there_before_the_last_look_comes_in_the_order_of_time) {
  TakenQueue queue;
  HeldTaken held(queue);
  held.hold(TakenSample{.tid = 1, .time_ns = 100});
  held.hold(TakenSample{.tid = 1, .time_ns = 300});
  held.hold(TakenSample{.tid = 2, .time_ns = 200});
  held.hold(TaskChange{.tid = 3, .time_ns = 250});
  held.end_look(250);
  BOOST_TEST(released(queue).empty());
  held.end_look(400);
  BOOST_TEST((released(queue) == Tids{1, 2}));
  held.release_all();
  BOOST_TEST((released(queue) == Tids{3, 1}));
}

BOOST_AUTO_TEST_CASE(of_the_same_time_the_first_held_is_the_first) {
  TakenQueue queue;
  HeldTaken held(queue);
  for (const pid_t tid : {5, 4, 3})
    held.hold(TaskChange{.tid = tid, .time_ns = 100});
  held.release_all();
  BOOST_TEST((released(queue) == Tids{5, 4, 3}));
}

BOOST_AUTO_TEST_CASE(times_that_cannot_be_are_made_the_nearest_that_can) {
  TakenQueue queue;
  HeldTaken held(queue);
  held.hold(TakenSample{.tid = 1, .time_ns = 1000});
  held.release_all();
  held.hold(TakenSample{.tid = 2, .time_ns = 10});                // before what is gone
  held.hold(TakenSample{.tid = 3, .time_ns = ~std::uint64_t{}});  // not yet
  held.release_all();
  const auto events = queue.take();
  BOOST_TEST_REQUIRE(events.size() == 3u);
  BOOST_TEST(std::get<TakenSample>(events[1]).time_ns == 1000u);
  BOOST_TEST(std::get<TakenSample>(events[2]).time_ns <= pe::monotonic_ns());
}

BOOST_AUTO_TEST_CASE(more_than_is_held_is_released_at_once) {
  TakenQueue queue;
  HeldTaken held(queue, 10'000);
  held.hold(TakenSample{.tid = 1, .time_ns = 200, .stack = std::vector<std::byte>(6000)});
  BOOST_TEST(released(queue).empty());
  held.hold(TakenSample{.tid = 2, .time_ns = 100, .stack = std::vector<std::byte>(6000)});
  BOOST_TEST((released(queue) == Tids{2, 1}));
}

BOOST_AUTO_TEST_SUITE_END()
