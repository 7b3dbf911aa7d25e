// SPDX-License-Identifier: MIT
#include "recording/waits/running_threads.h"

#include <boost/test/unit_test.hpp>

using pe::waits::RunningThreads;

BOOST_AUTO_TEST_SUITE(running_threads)

BOOST_AUTO_TEST_CASE(silence_lasts_until_any_thread_runs) {
  RunningThreads threads;
  threads.begin(10);
  BOOST_TEST(threads.start(1, 7, 30).since_ns == 10u);
  BOOST_TEST(threads.start(1, 8, 35).since_ns == 0u);
  BOOST_TEST(threads.start(1, 7, 36).since_ns == 0u);  // it runs already
  BOOST_TEST(threads.count() == 2u);
  threads.stop(7, 40);
  threads.stop(7, 45);  // it does not run any more
  BOOST_TEST(threads.silence().since_ns == 0u);
  threads.stop(8, 50);
  threads.stop(9, 55);  // nothing is known of it
  BOOST_TEST(threads.silence().since_ns == 50u);
  BOOST_TEST(!threads.silence().is_lost);
  BOOST_TEST(threads.start(1, 8, 50).since_ns == 0u);  // no time has passed
}

BOOST_AUTO_TEST_CASE(samples_stand_for_all_time_of_a_thread_on_its_cpus) {
  RunningThreads threads;
  threads.begin(10);
  BOOST_TEST(threads.sample(1, 7, 100, 25) == 25u);  // it was not seen to start
  threads.stop(7, 130);
  threads.start(1, 7, 200);
  BOOST_TEST(threads.sample(1, 7, 205, 25) == 35u);
  threads.keep(7, {.ip = 99, .chain = {}});
  threads.stop(7, 208);
  const auto rest = threads.end(7, 300);
  BOOST_TEST(rest.pid == 1u);
  BOOST_TEST(rest.ns == 3u);
  BOOST_TEST(rest.stack.ip == 99u);
  BOOST_TEST(threads.end(7, 300).ns == 0u);  // it has ended
  threads.start(1, 8, 310);
  const auto rests = threads.finish(350);
  BOOST_REQUIRE(rests.size() == 1u);
  BOOST_TEST(rests[0].ns == 40u);
  BOOST_TEST(threads.silence().since_ns == 350u);
}

BOOST_AUTO_TEST_CASE(a_thread_that_executes_a_program_goes_on_under_another_number) {
  RunningThreads threads;
  threads.begin(10);
  threads.start(1, 8, 20);
  threads.start(2, 9, 25);
  threads.execute(1, 1, 30);
  BOOST_TEST(threads.count() == 2u);
  threads.stop(9, 40);
  threads.stop(1, 50);
  BOOST_TEST(threads.silence().since_ns == 50u);
  BOOST_TEST(threads.end(1, 60).ns == 30u);
}

BOOST_AUTO_TEST_CASE(where_records_were_lost_no_silence_is_made_up) {
  RunningThreads threads;
  threads.begin(10);
  threads.start(1, 7, 20);
  threads.lose(30, 60);
  BOOST_TEST(threads.count() == 0u);
  BOOST_TEST(threads.silence().since_ns == 30u);
  BOOST_TEST(threads.silence().is_lost);
  BOOST_TEST(threads.sample(1, 7, 70, 25) == 25u);
  threads.stop(7, 80);
  BOOST_TEST(!threads.silence().is_lost);
  BOOST_TEST(threads.start(1, 7, 90).since_ns == 80u);
}

BOOST_AUTO_TEST_SUITE_END()
