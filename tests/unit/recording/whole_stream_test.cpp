// Tests the parts that need no counters.
// SPDX-License-Identifier: MIT
#include "recording/stream/whole_stream.h"

#include <boost/test/unit_test.hpp>

#include "support/string_output.h"

BOOST_AUTO_TEST_SUITE(whole_stream)

BOOST_AUTO_TEST_CASE(processes_that_could_not_be_read_are_counted_and_one_is_named) {
  using pe::recording::describe_unreadable;
  BOOST_TEST(describe_unreadable({7}, {7}, "record as root") ==
             "process 7 could not be read in /proc, so its frames have no names: record as root");
  BOOST_TEST(describe_unreadable({9, 7}, {7, 9}, "record as root") ==
             "2 processes could not be read in /proc (the first: 9), so their frames have no "
             "names: record as root");
}

BOOST_AUTO_TEST_CASE(processes_that_could_not_be_read_count_only_if_the_stream_has_frames_of_them) {
  using pe::recording::describe_unreadable;
  BOOST_TEST(describe_unreadable({1}, {7}, "record as root") == "");
  BOOST_TEST(describe_unreadable({}, {7}, "record as root") == "");
  BOOST_TEST(describe_unreadable({1, 7}, {7, 8}, "record as root") ==
             "process 7 could not be read in /proc, so its frames have no names: record as root");
}

BOOST_AUTO_TEST_CASE(where_no_binaries_are_kept_nothing_is_said_of_them) {
  pe::StringOutput out;
  pe::stream::StreamWriter writer(out);
  perf_event_attr attr{};
  attr.build_id = 1;
  pe::Budget budget;
  pe::recording::RecordedStream stream(writer, attr, {.may_keep_binaries = false}, budget);
  pe::Closing closing;
  pe::recording::finish_keeping(stream, closing);
  BOOST_TEST(closing.doubts.empty());
  BOOST_TEST(closing.details.empty());
}

BOOST_AUTO_TEST_SUITE_END()
