// SPDX-License-Identifier: MIT
#include "recording/stream/thinned_samples.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "stream/records/record.h"
#include "stream/stream_writer.h"

using Numbers = std::vector<int>;

BOOST_AUTO_TEST_SUITE(thinned_samples)

namespace {

/// Samples that are numbers; `alone` are those without callers.
struct Fixture {
  Numbers alone;
  pe::recording::ThinnedSamples<int> samples{[this](int sample) { alone.push_back(sample); }};
  pe::stream::RecordBuilder builder;

  /// A record about a thread: of its end, or of a program that it executes.
  void follow(std::uint32_t type, std::uint16_t misc, std::uint32_t pid, std::uint32_t tid) {
    builder.begin(type, misc).add(pid);
    if (type == PERF_RECORD_COMM)
      builder.add(tid).add(std::uint64_t{'x'});
    else
      builder.add(pid).add(tid).add(tid).add(std::uint64_t{0});
    samples.follow(pe::stream::view_record(std::as_bytes(std::span(builder.finish()))));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(wait_for_a_stack_of_their_thread_and_event, Fixture) {
  samples.add({10, 11, 1}, 100);
  samples.add({10, 12, 1}, 200);
  samples.add({10, 11, 2}, 300);
  samples.add({10, 11, 1}, 101);
  BOOST_TEST(samples.take({10, 11, 1}) == (Numbers{100, 101}), boost::test_tools::per_element());
  BOOST_TEST(samples.take({10, 11, 1}).empty());
  BOOST_TEST(samples.take({10, 13, 1}).empty());
  BOOST_TEST(samples.take({10, 12, 1}) == Numbers{200}, boost::test_tools::per_element());
  BOOST_TEST(samples.take({10, 11, 2}) == Numbers{300}, boost::test_tools::per_element());
  BOOST_TEST(samples.written_alone() == 0U);
}

BOOST_FIXTURE_TEST_CASE(have_no_callers_if_their_thread_ends, Fixture) {
  samples.add({10, 11, 1}, 100);
  samples.add({10, 11, 2}, 101);
  samples.add({10, 12, 1}, 200);
  follow(PERF_RECORD_EXIT, 0, 10, 11);
  BOOST_TEST(alone == (Numbers{100, 101}), boost::test_tools::per_element());
  BOOST_TEST(samples.take({10, 12, 1}) == Numbers{200}, boost::test_tools::per_element());
  BOOST_TEST(samples.written_alone() == 2U);
}

BOOST_FIXTURE_TEST_CASE(have_no_callers_if_their_process_executes_a_program, Fixture) {
  samples.add({10, 11, 1}, 100);
  samples.add({10, 12, 1}, 200);
  samples.add({20, 21, 1}, 300);
  follow(PERF_RECORD_COMM, 0, 10, 11);  // only a name
  BOOST_TEST(alone.empty());
  follow(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, 10, 10);
  BOOST_TEST(alone == (Numbers{100, 200}), boost::test_tools::per_element());
  samples.finish();
  BOOST_TEST(alone == (Numbers{100, 200, 300}), boost::test_tools::per_element());
  BOOST_TEST(samples.written_alone() == 3U);
}

BOOST_FIXTURE_TEST_CASE(are_written_before_they_fill_memory, Fixture) {
  constexpr int kMany = 100'000;
  for (int i = 0; i < kMany; ++i)
    samples.add({10, 11, 1}, i);
  BOOST_TEST(samples.written_alone() == 1U << 16);
  samples.finish();
  BOOST_TEST(alone.size() == std::size_t{kMany});
}

BOOST_AUTO_TEST_SUITE_END()
