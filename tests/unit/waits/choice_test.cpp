// SPDX-License-Identifier: MIT
#include "recording/waits/choice.h"

#include <boost/test/unit_test.hpp>

using pe::waits::describe_no_waits;

BOOST_AUTO_TEST_SUITE(choice)

BOOST_AUTO_TEST_CASE(a_program_that_never_waits_is_described_by_what_was_wanted) {
  BOOST_TEST(describe_no_waits({.with_preempted = true}) == "did not wait");
  BOOST_TEST(describe_no_waits({}) == "did not wait, except perhaps for a CPU (--preempted)");
  BOOST_TEST(describe_no_waits({.with_locks = true}) == "waited for no lock");
}

BOOST_AUTO_TEST_CASE(waits_that_were_left_out_are_no_proof) {
  const auto* const selected = "had no wait that --state, --min-us and --max-us select";
  BOOST_TEST(describe_no_waits({.min_ns = 1'000}) == selected);
  BOOST_TEST(describe_no_waits({.max_ns = 1'000}) == selected);
  BOOST_TEST(describe_no_waits({.states = "D", .with_locks = true}) == selected);
}

BOOST_AUTO_TEST_SUITE_END()
