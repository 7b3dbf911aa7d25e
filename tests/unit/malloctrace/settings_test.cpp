// SPDX-License-Identifier: MIT
#include "malloctrace/preload/sampling.h"

#include <boost/test/unit_test.hpp>

#include <string>

using pe::malloctrace::parse_settings;
using pe::malloctrace::Settings;

BOOST_AUTO_TEST_SUITE(settings)

BOOST_AUTO_TEST_CASE(reads_every_field) {
  const Settings all = parse_settings("socket=a-b.1,key=k2,sample=524288,depth=20,mmap=1,follow=0");
  BOOST_TEST(all.socket.view() == "a-b.1");
  BOOST_TEST(all.key.view() == "k2");
  BOOST_TEST(all.sample_bytes == 524288U);
  BOOST_TEST(all.depth == 20U);
  BOOST_TEST(all.traces_mmap);
  BOOST_TEST(!all.follows_forks);
}

BOOST_AUTO_TEST_CASE(nothing_said_is_exact_and_followed_and_off) {
  const Settings none = parse_settings("");
  BOOST_TEST(none.socket.view() == "");
  BOOST_TEST(none.sample_bytes == 0U);
  BOOST_TEST(none.depth == 0U);
  BOOST_TEST(!none.traces_mmap);
  BOOST_TEST(none.follows_forks);
}

BOOST_AUTO_TEST_CASE(malformed_fields_mean_nothing) {
  const Settings odd = parse_settings(
      ",,socket,sample=-1,sample=,depth=4294967296,depth=1x,mmap=yes,follow=2,new=3,=,socket=s,");
  BOOST_TEST(odd.socket.view() == "s");
  BOOST_TEST(odd.sample_bytes == 0U);
  BOOST_TEST(odd.depth == 0U);
  BOOST_TEST(!odd.traces_mmap);
  BOOST_TEST(odd.follows_forks);
}

BOOST_AUTO_TEST_CASE(a_name_that_is_no_socket_s_is_not_cut) {
  const std::string longest(pe::inprocess::ShortText::kMost, 'x');
  BOOST_TEST(parse_settings("socket=" + longest).socket.view() == longest);
  BOOST_TEST(parse_settings("socket=" + longest + "x").socket.view() == "");
}

BOOST_AUTO_TEST_SUITE_END()
