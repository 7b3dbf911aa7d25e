// SPDX-License-Identifier: MIT
#include "stream/records/tracepoint.h"

#include <boost/test/unit_test.hpp>

using pe::stream::parse_tracepoint_field;

BOOST_AUTO_TEST_SUITE(tracepoint)

BOOST_AUTO_TEST_CASE(fields_are_found_by_their_whole_name) {
  constexpr const char* kFormat =
      "name: sched_switch\nID: 372\nformat:\n"
      "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
      "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\n"
      "print fmt: \"prev_state=%s\", REC->prev_state\n";
  const auto field = parse_tracepoint_field(kFormat, "prev_state");
  BOOST_REQUIRE(field.has_value());
  BOOST_TEST(field->offset == 32u);
  BOOST_TEST(field->size == 8u);
  BOOST_TEST(!parse_tracepoint_field(kFormat, "state").has_value());
  BOOST_TEST(!parse_tracepoint_field("\tfield:long x;\toffset:a;\tsize:8;\n", "x").has_value());
  BOOST_TEST(!parse_tracepoint_field("\tfield:long x;\toffset:4;\n\tsize:8;\n", "x").has_value());
  BOOST_TEST(!parse_tracepoint_field("", "x").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
