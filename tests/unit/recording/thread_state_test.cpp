// SPDX-License-Identifier: MIT
#include "recording/thread_state.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <string>

BOOST_AUTO_TEST_SUITE(thread_state)

namespace {

/// A line of /proc/PID/task/TID/stat with this name and this state.
std::string stat_line(const std::string& name, const std::string& state) {
  return "4711 (" + name + ") " + state +
         " 1 4711 4711 0 -1 4194304 104 0 0 0 250 10 0 0 20 0 1 0 123456 3133440 410 "
         "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
}

}  // namespace

BOOST_AUTO_TEST_CASE(schedstat_is_three_numbers) {
  const auto times = pe::stream::parse_schedstat("1287255 77 3\n");
  BOOST_TEST_REQUIRE(times.has_value());
  BOOST_TEST(times->on_cpu_ns == 1287255u);
  BOOST_TEST(times->waited_ns == 77u);
  BOOST_TEST(times->times_run == 3u);
  for (const char* text : {"", "\n", "1 2", "1 2 x", "-1 2 3", "99999999999999999999 1 1"})
    BOOST_TEST(!pe::stream::parse_schedstat(text).has_value(), "accepted '" << text << "'");
}

BOOST_AUTO_TEST_CASE(state_and_cpu_follow_the_name_whatever_that_is) {
  for (const char* name : {"cat", "", "a b", ") Z 1 2", "(((", "x) R"}) {
    const auto seen = pe::stream::parse_thread_stat(stat_line(name, "S"));
    BOOST_TEST_REQUIRE(seen.has_value(), name);
    BOOST_TEST(seen->state == 'S', name);
    BOOST_TEST(seen->cpu == 5u, name);
  }
  for (const char* text : {"", ")", "1 (x) R", "1 (x) R 1 1 1"})
    BOOST_TEST(!pe::stream::parse_thread_stat(text).has_value(), "accepted '" << text << "'");
}

BOOST_AUTO_TEST_CASE(a_blocked_thread_has_a_place_and_a_running_one_has_not) {
  using pe::stream::parse_blocked_at;
  const auto in_call =
      parse_blocked_at("0 0x3 0x10 0x20 0x22 0xff 0x0 0x7ffe33664a88 0x7f06d2ad\n");
  BOOST_TEST_REQUIRE(in_call.has_value());
  BOOST_TEST(in_call->sp == 0x7ffe33664a88u);
  BOOST_TEST(in_call->ip == 0x7f06d2adu);
  const auto in_fault = parse_blocked_at("-1 0x7ffe33664a88 0x7f06d2ad\n");
  BOOST_TEST_REQUIRE(in_fault.has_value());
  BOOST_TEST(in_fault->sp == 0x7ffe33664a88u);
  for (const char* text : {"", "running\n", "0 0x3 0x10 0x20 0x22 0xff 0x0 0x7ffe\n", "-1 1 2\n"})
    BOOST_TEST(!parse_blocked_at(text).has_value(), "accepted '" << text << "'");
}

BOOST_AUTO_TEST_CASE(we_run_and_have_run) {
  const pe::stream::ThreadFiles own(::getpid(), ::gettid());
  BOOST_TEST(own.state().value().state == 'R');
  BOOST_TEST(own.times().value().times_run > 0u);
  BOOST_TEST(pe::stream::mapped_pages(::getpid()).value() > 0u);
}

BOOST_AUTO_TEST_CASE(of_a_thread_that_is_gone_nothing_is_known) {
  constexpr pid_t kNobody = 4194303;
  const pe::stream::ThreadFiles gone(kNobody, kNobody);
  BOOST_TEST(!gone.state().has_value());
  BOOST_TEST(!gone.times().has_value());
  BOOST_TEST(!pe::stream::mapped_pages(kNobody).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
