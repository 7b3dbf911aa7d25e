// SPDX-License-Identifier: MIT
#include "recording/counters/counter.h"

#include <boost/test/unit_test.hpp>

#include "recording/bpf/records.h"

using namespace pe::recording;

BOOST_AUTO_TEST_SUITE(ring_plan)

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

}  // namespace

BOOST_AUTO_TEST_CASE(copies_of_stacks_get_large_rings_and_others_what_anybody_may_lock) {
  const RingPlan copies = first_plan({}, 2);
  BOOST_TEST(copies.ring_bytes() == 16 * kMebibyte);
  BOOST_TEST(copies.stack_bytes == kMaxStackBytes);
  for (const CallGraph none : {CallGraph::kNone, CallGraph::kFramePointers}) {
    const RingPlan plan = first_plan({.call_graph = none}, 2);
    BOOST_TEST(plan.ring_bytes() == kMebibyte / 2);
    BOOST_TEST(plan.stack_bytes == 0u);
    BOOST_TEST(plan.watermark_bytes == kMebibyte / 4);
  }
  BOOST_TEST(first_plan({.kernel_only = true}, 2).stack_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(many_cpus_share_what_rings_may_take) {
  BOOST_TEST(first_plan({}, 64).ring_bytes() == 8 * kMebibyte);
  BOOST_TEST(first_plan({}, 100).ring_bytes() == 4 * kMebibyte);  // a power of two
  BOOST_TEST(first_plan({}, 100'000).ring_bytes() == kMebibyte / 2);
  BOOST_TEST(first_plan({}, 0).ring_bytes() == 16 * kMebibyte);
}

BOOST_AUTO_TEST_CASE(rings_are_small_where_memory_is_scarce) {
  const RingPlan small = first_plan({.with_switches = true}, 2, 24 * kMebibyte);
  BOOST_TEST(small.ring_bytes() == kMebibyte);
  BOOST_TEST(small.lacks_memory);
  BOOST_TEST(!first_plan({.with_switches = true}, 2, 4096 * kMebibyte).lacks_memory);
  BOOST_TEST(!first_plan({.with_switches = true, .ring_pages = 4}, 2, 24 * kMebibyte).lacks_memory);
  BOOST_TEST(!first_plan({.call_graph = CallGraph::kNone}, 2, 24 * kMebibyte).lacks_memory);
  BOOST_TEST(!first_plan({}, 100'000, 65'536 * kMebibyte).lacks_memory);  // they share 512 MiB
}

BOOST_AUTO_TEST_CASE(switches_get_twice_as_much_and_a_quarter_of_that_for_themselves) {
  const RingPlan plan = first_plan({.period = 1, .with_switches = true}, 2);
  BOOST_TEST(plan.ring_bytes() == 32 * kMebibyte);
  BOOST_TEST(plan.switch_ring_bytes() == 8 * kMebibyte);
  // 64 samples: a waiting thread's stack is looked at soon.
  BOOST_TEST(plan.watermark_bytes == 64 * (plan.stack_bytes + 256));
  const RingPlan smallest{.pages = 1};
  BOOST_TEST(smallest.switch_pages() == 1u);
}

BOOST_AUTO_TEST_CASE(what_the_user_says_holds) {
  const RingPlan plan = first_plan({.stack_bytes = 4096, .ring_pages = 8}, 2);
  BOOST_TEST(plan.ring_bytes() == 8 * 4096u);
  BOOST_TEST(plan.stack_bytes == 4096u);
  BOOST_TEST(!smaller_plan(plan, {.stack_bytes = 4096, .ring_pages = 8}, 2));
}

BOOST_AUTO_TEST_CASE(a_ring_holds_a_twentieth_of_a_second) {
  // 16 samples at least, whatever the rate: 32 KiB and a little less than 64 KiB.
  BOOST_TEST(first_plan({.frequency_hz = 1, .ring_pages = 128}, 2).stack_bytes == 32'768u);
  BOOST_TEST(first_plan({.frequency_hz = 1000, .ring_pages = 128}, 2).stack_bytes ==
             512 * 1024 / 50 / 8 * 8u);
  BOOST_TEST(first_plan({.frequency_hz = 100'000, .ring_pages = 128}, 2).stack_bytes == 4096u);
  // Nobody knows how often an event comes that is counted by its period.
  BOOST_TEST(first_plan({.frequency_hz = 100'000, .period = 5, .ring_pages = 128}, 2).stack_bytes ==
             32'768u);
}

BOOST_AUTO_TEST_CASE(smaller_plans_end_where_anybody_may_lock_as_much) {
  Request request;
  request.frequency_hz = 1000;
  std::optional<RingPlan> plan = first_plan(request, 2);
  std::size_t plans = 0;
  for (auto next = plan; next; next = smaller_plan(*next, request, 2)) {
    if (plans++ > 0)
      BOOST_TEST(next->pages == plan->pages / 2);
    BOOST_TEST(next->stack_bytes <= plan->stack_bytes);
    plan = next;
  }
  BOOST_TEST(plans == 6u);
  BOOST_TEST(plan->pages == 128u);
}

BOOST_AUTO_TEST_CASE(copies_wake_us_every_10_ms_but_not_behind_half_a_ring) {
  BOOST_TEST(first_plan({.frequency_hz = 1000, .stack_bytes = 16'384}, 2).watermark_bytes ==
             20 * (16'384 + 256u));
  BOOST_TEST(first_plan({.frequency_hz = 1, .stack_bytes = 16'384}, 2).watermark_bytes ==
             16'384 + 256u);
  BOOST_TEST(first_plan({.frequency_hz = 50'000, .stack_bytes = 65'528}, 8).watermark_bytes ==
             8 * kMebibyte);
}

BOOST_AUTO_TEST_CASE(where_the_kernel_walks_stacks_rings_are_small_and_copies_what_it_passes_on) {
  const Request request{.engine = Engine::kBpf, .stack_bytes = 4096, .ring_pages = 4096};
  const RingPlan plan = first_plan(request, 2);
  BOOST_TEST(plan.ring_bytes() == kMebibyte / 2);
  BOOST_TEST(plan.stack_bytes == static_cast<unsigned>(pe::unwind::kPassedStackBytes));
  // Each wake-up is an interrupt in the process that the record is about.
  BOOST_TEST(plan.watermark_bytes == kMebibyte / 16);
}

BOOST_AUTO_TEST_CASE(each_record_wakes_us_if_that_is_asked_for) {
  BOOST_TEST(first_plan({.wakes_at_once = true}, 2).watermark_bytes == 1u);
  BOOST_TEST(first_plan({.with_switches = true, .wakes_at_once = true}, 2).watermark_bytes == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
