// SPDX-License-Identifier: MIT
#include "recording/waits/wait_tracker.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <span>
#include <string>

using pe::waits::Wait;
using pe::waits::WaitChoice;
using pe::waits::WaitTracker;

BOOST_AUTO_TEST_SUITE(wait_tracker)

namespace {

/// Collects one word for each wait: "tid:length", with "@address" of its stack, "+" if unfinished.
struct Tracked {
  explicit Tracked(const WaitChoice& choice = {})
      : tracker(choice, [this](const Wait& wait) {
          text += (text.empty() ? "" : " ") + std::to_string(wait.tid) + ":" +
                  std::to_string(wait.length_ns);
          if (!wait.stack.chain.empty())
            text += "@" + std::to_string(wait.stack.chain.front());
          text += wait.is_unfinished ? "+" : "";
          misc_of_wait = wait.stack.misc;
        }) {}

  void out(std::uint32_t tid, std::uint64_t time_ns, bool is_preempted = false) {
    tracker.switched({1, tid, time_ns, true, is_preempted});
  }
  void in(std::uint32_t tid, std::uint64_t time_ns) {
    tracker.switched({1, tid, time_ns, false, false});
  }
  void sample(std::uint32_t tid, std::uint64_t address, char state = '?') {
    const std::array<std::uint64_t, 1> chain{address};
    sample_chain(tid, chain, state);
  }
  void sample_chain(std::uint32_t tid, std::span<const std::uint64_t> chain, char state = '?') {
    pe::stream::Sample sample;
    sample.pid = 1;
    sample.tid = tid;
    sample.has_callchain = true;
    sample.callchain = pe::stream::U64View(std::as_bytes(std::span(chain)));
    tracker.sample(sample, misc, state);
  }

  std::string text;
  std::uint16_t misc = PERF_RECORD_MISC_KERNEL;  ///< of the next samples
  std::uint16_t misc_of_wait = 0;                ///< of the last one
  WaitTracker tracker;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_wait_keeps_how_the_walk_of_its_stack_ended) {
  Tracked t;
  t.misc = PERF_RECORD_MISC_USER | pe::stream::kMiscIncomplete | PERF_RECORD_MISC_EXACT_IP;
  t.sample(7, 100);
  t.out(7, 10);
  t.in(7, 50);
  BOOST_TEST(t.misc_of_wait == (PERF_RECORD_MISC_USER | pe::stream::kMiscIncomplete));
}

BOOST_AUTO_TEST_CASE(a_wait_lasts_from_ceasing_to_run_to_running_again) {
  Tracked t;
  t.sample(7, 100);
  t.out(7, 10);
  t.sample(8, 200);
  t.out(8, 20);
  t.in(7, 50);
  t.in(8, 25);
  BOOST_TEST(t.text == "7:40@100 8:5@200");
  BOOST_TEST(t.tracker.counts().total_ns == 45u);
  BOOST_TEST(t.tracker.counts().dropped == 0u);
}

BOOST_AUTO_TEST_CASE(a_wait_whose_sample_was_lost_has_no_stack_but_its_time) {
  Tracked t;
  t.sample(7, 100);
  t.out(7, 10);
  t.in(7, 20);
  t.out(7, 30);
  t.in(7, 35);
  BOOST_TEST(t.text == "7:10@100 7:5");
  BOOST_TEST(t.tracker.counts().stackless == 1u);
}

BOOST_AUTO_TEST_CASE(threads_that_had_to_make_way_do_not_wait_unless_asked_for) {
  for (const bool is_asked : {false, true}) {
    Tracked t({.with_preempted = is_asked});
    t.out(7, 10, true);
    t.in(7, 20);
    BOOST_TEST(t.text == (is_asked ? "7:10" : ""));
  }
}

BOOST_AUTO_TEST_CASE(lengths_and_states_are_chosen) {
  Tracked t({.min_ns = 5, .max_ns = 10, .states = "D"});
  for (const auto& [length, state] :
       {std::pair{4, 'D'}, {5, 'D'}, {10, 'D'}, {11, 'D'}, {6, 'S'}, {7, '?'}}) {
    t.sample(7, 1, state);
    t.out(7, 100);
    t.in(7, 100 + static_cast<std::uint64_t>(length));
  }
  BOOST_TEST(t.text == "7:5@1 7:10@1");
  BOOST_TEST(t.tracker.counts().stateless == 1u);
}

BOOST_AUTO_TEST_CASE(a_wait_goes_on_until_the_recording_ends) {
  Tracked t;
  t.out(8, 30);
  t.out(7, 10);
  t.tracker.finish(100);
  BOOST_TEST(t.text == "7:90+ 8:70+");
  BOOST_TEST(t.tracker.counts().unfinished == 2u);
}

BOOST_AUTO_TEST_CASE(a_thread_that_has_ended_does_not_wait) {
  Tracked t;
  t.tracker.ended(7, 5);
  t.sample(7, 1);
  t.out(7, 10);  // the last time
  t.tracker.finish(100);
  BOOST_TEST(t.text == "");
  t.tracker.forked(7);  // another thread with the same number
  t.in(7, 110);
  t.out(7, 120);
  t.in(7, 130);
  BOOST_TEST(t.text == "7:10");
  BOOST_TEST(t.tracker.counts().began_before == 0u);
}

BOOST_AUTO_TEST_CASE(a_wait_without_frames_has_not_lost_its_stack) {
  Tracked t;  // a kernel thread, of which only user frames are wanted
  t.sample_chain(7, {});
  t.out(7, 10);
  t.in(7, 20);
  BOOST_TEST(t.text == "7:10");
  BOOST_TEST(t.tracker.counts().stackless == 0u);
}

BOOST_AUTO_TEST_CASE(stacks_that_cannot_be_had_are_not_lost) {
  Tracked t;
  t.tracker.expect_no_stacks();
  t.out(7, 10);
  t.in(7, 20);
  BOOST_TEST(t.text == "7:10");
  BOOST_TEST(t.tracker.counts().stackless == 0u);
}

// The recorder stops its counters one after the other.  That of switches may stop first.
BOOST_AUTO_TEST_CASE(a_wait_whose_end_was_not_recorded_ends_with_its_thread) {
  Tracked t;
  t.sample(7, 100);
  t.out(7, 10);
  t.tracker.ended(7, 90);
  t.tracker.finish(100);
  BOOST_TEST(t.text == "7:80@100");
}

BOOST_AUTO_TEST_CASE(a_thread_that_begins_a_program_takes_the_number_of_the_first) {
  Tracked t;
  t.tracker.ended(7, 5);
  t.tracker.began_program(7);
  t.out(7, 10);
  t.in(7, 20);
  BOOST_TEST(t.text == "7:10");
}

BOOST_AUTO_TEST_CASE(what_began_before_the_recording_is_counted) {
  Tracked t;
  t.in(7, 10);
  BOOST_TEST(t.text == "");
  BOOST_TEST(t.tracker.counts().began_before == 1u);
}

BOOST_AUTO_TEST_CASE(where_a_switch_is_missing_no_length_is_made_up) {
  Tracked t;
  t.out(7, 10);
  t.out(7, 30);  // it must have run between these two
  t.in(7, 35);
  t.in(7, 50);  // it must have stopped between these two
  BOOST_TEST(t.text == "7:5");
  BOOST_TEST(t.tracker.counts().dropped == 2u);
}

BOOST_AUTO_TEST_CASE(a_wait_that_may_be_two_is_dropped) {
  Tracked t;
  t.out(7, 10);
  t.tracker.lost_switches(40);  // it may have run and stopped again
  t.in(7, 50);
  t.out(8, 30);  // before the end of the loss
  t.in(8, 60);
  t.out(7, 60);
  t.in(7, 65);
  BOOST_TEST(t.text == "7:5");
  BOOST_TEST(t.tracker.counts().dropped == 2u);
}

BOOST_AUTO_TEST_CASE(a_wait_has_its_kind_and_the_time_of_its_waking) {
  using Kind = pe::stream::WaitKind;
  std::string text;
  WaitTracker tracker({.with_preempted = true}, [&](const Wait& wait) {
    text += std::to_string(wait.tid) + ":" + std::to_string(wait.length_ns) + "," +
            std::to_string(wait.end_ns - wait.woken_ns) + "," + std::to_string(wait.weight) + " ";
  });
  const auto sample = [&](std::uint32_t tid, Kind kind) {
    pe::stream::Sample taken;
    taken.tid = tid;
    tracker.sample(taken, 0, 'S');
    tracker.set_kind(tid, kind);
  };
  tracker.woken(7, 1);  // it was not seen before
  sample(7, Kind::kLock);
  tracker.woken(7, 5);  // it still runs
  tracker.switched({1, 7, 10, true, false});
  tracker.woken(7, 30);
  tracker.switched({1, 7, 50, false, false});
  sample(7, Kind::kSleep);
  tracker.switched({1, 7, 60, true, false});
  tracker.switched({1, 7, 70, false, false});  // nobody is known to have woken it
  sample(7, Kind::kSleep);
  tracker.switched({1, 7, 80, true, true});
  tracker.switched({1, 7, 95, false, false});
  tracker.forked(1, 8, 90);  // a new thread is ready from its start on
  tracker.switched({1, 8, 99, false, false});
  tracker.waits_since(1, 9, 2, Kind::kIo);
  tracker.waits_since(1, 7, 2, Kind::kIo);  // its own records tell more
  tracker.switched({1, 9, 102, false, false});
  BOOST_TEST(text == "7:40,20,2 7:10,0,3 7:15,15,1 8:9,9,1 9:100,0,4 ");
  BOOST_TEST(tracker.counts().dropped == 0u);
  BOOST_TEST(tracker.counts().began_before == 0u);
}

BOOST_AUTO_TEST_CASE(idle_threads_and_those_without_a_number_do_not_wait) {
  Tracked t;
  for (const std::uint32_t tid : {0U, 0xffffffffU}) {
    t.sample(tid, 1);
    t.out(tid, 10);
    t.in(tid, 20);
  }
  BOOST_TEST(t.text == "");
  BOOST_TEST(t.tracker.threads() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
