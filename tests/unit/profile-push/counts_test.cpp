// SPDX-License-Identifier: MIT
#include "profile-push/counts.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>

namespace {

using pe::push::Counts;
using pe::push::counts_text;
using pe::push::losses_text;
using pe::push::parse_counts;

constexpr Counts kSome{.sent = 5, .dropped = 2, .refused = 1, .damaged = 4};

}  // namespace

BOOST_AUTO_TEST_SUITE(counts_of_a_spool)

BOOST_AUTO_TEST_CASE(come_back_from_their_text) {
  BOOST_TEST(counts_text(kSome) == "sent 5\ndropped 2\nrefused 1\ndamaged 4\n");
  BOOST_CHECK(parse_counts(counts_text(kSome)) == kSome);
}

BOOST_AUTO_TEST_CASE(what_is_no_count_is_nothing) {
  BOOST_CHECK(parse_counts("") == Counts{});
  BOOST_CHECK(parse_counts("sent -1\ndropped\nrefused 99999999999999999999\nodd 1\ndamaged 1") ==
              Counts{});
  BOOST_TEST(parse_counts("odd 3\nsent 7\n").sent == 7U);
}

BOOST_AUTO_TEST_CASE(a_difference_is_never_negative) {
  const Counts before{.sent = 3, .dropped = 9, .refused = 0, .damaged = 4};
  BOOST_CHECK(kSome.since(before) == (Counts{.sent = 2, .dropped = 0, .refused = 1, .damaged = 0}));
}

BOOST_AUTO_TEST_CASE(losses_are_told_without_zeros) {
  BOOST_TEST(losses_text({.sent = 5, .dropped = 0, .refused = 0, .damaged = 0}).empty());
  BOOST_TEST(losses_text(kSome) ==
             "2 dropped as the spool was full, 1 refused by the server, 4 half-written");
}

BOOST_AUTO_TEST_SUITE_END()
