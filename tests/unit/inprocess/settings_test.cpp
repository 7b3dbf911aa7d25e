// SPDX-License-Identifier: MIT
#include "recording/signal/settings.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "recording/inprocess/runtime/settings_text.h"

namespace {

using pe::inprocess::Clock;
using pe::inprocess::parse_settings;
using pe::inprocess::Settings;
using pe::inprocess::ShortText;

}  // namespace

BOOST_AUTO_TEST_SUITE(sampler_settings)

BOOST_AUTO_TEST_CASE(reads_every_field) {
  const Settings all = parse_settings(
      "socket=a-b.1,key=k,hz=250,clock=wall,stack=8192,ring=65536,follow=0,filters=3");
  BOOST_TEST(all.socket.view() == "a-b.1");
  BOOST_TEST(all.key.view() == "k");
  BOOST_TEST(all.hz == 250U);
  BOOST_TEST((all.clock == Clock::kWall));
  BOOST_TEST(all.stack_bytes == 8192U);
  BOOST_TEST(all.ring_bytes == 65536U);
  BOOST_TEST(!all.follows_forks);
  BOOST_TEST(all.most_filters == 3U);
}

BOOST_AUTO_TEST_CASE(nothing_said_is_cpu_time_and_followed_and_off) {
  const Settings none = parse_settings("");
  BOOST_TEST(none.socket.view().empty());
  BOOST_TEST((none.clock == Clock::kCpu));
  BOOST_TEST(none.follows_forks);
  BOOST_TEST(none.most_filters == ~0U);
}

BOOST_AUTO_TEST_CASE(malformed_and_unbounded_fields_mean_nothing) {
  const Settings usual = parse_settings("");
  const Settings odd = parse_settings(
      ",,socket,hz=0,hz=1001,hz=-1,clock=sun,stack=99999999,ring=1,ring=4294967295,follow=2,x=1,="
      ",");
  BOOST_TEST(odd.socket.view().empty());
  BOOST_TEST(odd.hz == usual.hz);
  BOOST_TEST((odd.clock == usual.clock));
  BOOST_TEST(odd.stack_bytes == usual.stack_bytes);
  BOOST_TEST(odd.ring_bytes == usual.ring_bytes);
  BOOST_TEST(odd.follows_forks);
}

BOOST_AUTO_TEST_CASE(a_ring_is_a_power_of_two_and_holds_four_stacks) {
  const Settings settings = parse_settings("ring=70000,stack=1000001");
  BOOST_TEST(settings.ring_bytes == 131072U);
  BOOST_TEST(settings.stack_bytes == 32768U);
}

BOOST_AUTO_TEST_CASE(a_name_that_is_no_socket_s_is_not_cut) {
  const std::string longest(ShortText::kMost, 'x');
  BOOST_TEST(parse_settings("socket=" + longest).socket.view() == longest);
  BOOST_TEST(parse_settings("socket=" + longest + "x").socket.view().empty());
}

BOOST_AUTO_TEST_SUITE_END()
