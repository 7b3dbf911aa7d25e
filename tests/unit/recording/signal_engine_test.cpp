// SPDX-License-Identifier: MIT
#include "recording/signal_engine.h"

#include <boost/test/unit_test.hpp>

using pe::recording::why_fewer_samples;

BOOST_AUTO_TEST_SUITE(signal_engine)

BOOST_AUTO_TEST_CASE(the_kernels_tick_is_a_reason_only_above_it) {
  BOOST_TEST(why_fewer_samples(251, 250) ==
             "this kernel looks at timers of CPU time 250 times a second");
  for (const std::uint64_t hz : {99U, 250U})
    BOOST_TEST(why_fewer_samples(hz, 250) ==
               "signals came late, so that some stand for several periods");
}

BOOST_AUTO_TEST_SUITE_END()
