// SPDX-License-Identifier: MIT
#include "recording/signal/signal_engine.h"

#include <boost/test/unit_test.hpp>

using pe::recording::why_fewer_samples;

BOOST_AUTO_TEST_SUITE(signal_engine)

BOOST_AUTO_TEST_CASE(the_kernels_tick_is_a_reason_above_it_and_among_other_threads) {
  BOOST_TEST(why_fewer_samples(250, 251, 250) ==
             "this kernel checks CPU-time timers 250 times per second");
  BOOST_TEST(why_fewer_samples(60, 99, 250) ==
             "this kernel checks CPU-time timers 250 times per second, and only that of the thread "
             "that is running");
  for (const std::uint64_t hz : {99U, 250U})
    BOOST_TEST(why_fewer_samples(0.9 * static_cast<double>(hz), hz, 250) ==
               "signals arrived late, so some samples represent several periods");
}

BOOST_AUTO_TEST_SUITE_END()
