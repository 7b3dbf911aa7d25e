// SPDX-License-Identifier: MIT
#include "recording/stream/drain.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "support/made_ring.h"
#include "support/string_output.h"

using namespace pe;
using recording::Drain;

BOOST_AUTO_TEST_SUITE(drain)

namespace {

using testing::MadeRing;

/// Everything carries thread and time.
perf_event_attr drained_attr() {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  return attr;
}

std::string sample_at(std::uint64_t time_ns, std::uint32_t tid = 1) {
  stream::RecordBuilder builder;
  builder.begin(PERF_RECORD_SAMPLE).add(std::uint32_t{1}).add(tid).add(time_ns);
  return std::string(builder.finish());
}

/// With what follows every record that is no sample.
std::string other_at(std::uint64_t time_ns, std::uint32_t type,
                     const std::vector<std::uint64_t>& body = {}) {
  stream::RecordBuilder builder;
  builder.begin(type);
  for (const std::uint64_t number : body)
    builder.add(number);
  builder.add(std::uint64_t{0}).add(time_ns);
  return std::string(builder.finish());
}

std::string lost_at(std::uint64_t time_ns, std::uint64_t count) {
  return other_at(time_ns, PERF_RECORD_LOST, {0, count});
}

/// Two rings, and what comes out of them: times, "lost" for losses.
struct Drained {
  explicit Drained(bool tells_early = false) {
    for (const MadeRing& ring : made)
      rings.push_back(ring.open());
    pass_on = [this](const stream::Record& record) {
      text += text.empty() ? "" : " ";
      text +=
          record.type == PERF_RECORD_LOST ? "lost" : std::to_string(stream::time_of(record, attr));
    };
    if (tells_early)
      drain.report_losses_early();
  }
  /// What has come out since the last time.
  std::string take() { return std::exchange(text, {}); }

  perf_event_attr attr = drained_attr();
  std::vector<MadeRing> made{2};
  std::vector<stream::Ring> rings;
  StringOutput out;
  stream::StreamWriter writer{out};
  Budget budget;
  recording::RecordedStream stream{
      writer,
      attr,
      {.call_graph = recording::CallGraph::kNone, .may_keep_binaries = false},
      budget,
      {.pass_on = [this](const stream::Record& record) { pass_on(record); }}};
  recording::PassOn pass_on;
  Drain drain{stream, attr};
  std::string text;
};

std::size_t rounds_in(const std::string& bytes) {
  std::size_t rounds = 0;
  perf_event_header header;
  for (std::size_t at = 0; at + sizeof header <= bytes.size(); at += header.size) {
    std::memcpy(&header, bytes.data() + at, sizeof header);
    rounds += header.type == stream::kRecordFinishedRound ? 1 : 0;
  }
  return rounds;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_pass_writes_in_order_of_time_what_was_there_before_the_last_one) {
  Drained d;
  d.made[0].write(sample_at(10));
  d.made[0].write(sample_at(30));
  d.made[1].write(sample_at(20));
  d.drain.pass(d.rings);
  BOOST_TEST(d.take() == "");
  d.made[1].write(sample_at(25));
  d.drain.pass(d.rings);
  BOOST_TEST(d.take() == "10 20 25 30");
  // Later than the last pass's beginning.
  d.made[0].write(sample_at(pe::monotonic_ns() + 1'000'000'000'000));
  d.drain.pass(d.rings);
  d.drain.pass(d.rings);
  BOOST_TEST(d.take() == "");
  d.drain.finish(d.rings);
  BOOST_TEST(d.take() != "");
}

BOOST_AUTO_TEST_CASE(what_may_still_be_incomplete_waits) {
  Drained d;
  d.drain.pass(d.rings, 0);
  d.made[0].write(sample_at(10));
  d.made[0].write(sample_at(30));
  d.drain.pass(d.rings, 20);
  BOOST_TEST(d.take() == "10");
  d.made[0].write(sample_at(25));
  d.drain.pass(d.rings, 20);
  BOOST_TEST(d.take() == "");
  d.drain.pass(d.rings, 40);
  BOOST_TEST(d.take() == "25 30");
}

BOOST_AUTO_TEST_CASE(all_that_is_older_than_the_time_told_has_been_handed_on) {
  Drained d;
  const std::uint64_t before_ns = pe::monotonic_ns();
  d.drain.pass(d.rings);
  const std::uint64_t between_ns = pe::monotonic_ns();
  d.drain.pass(d.rings);
  BOOST_TEST(d.drain.written_until_ns() >= before_ns);
  BOOST_TEST(d.drain.written_until_ns() <= between_ns);
}

BOOST_AUTO_TEST_CASE(rooms_of_rings_are_given_back) {
  Drained d;
  d.made[0].write(sample_at(10));
  d.made[1].write(sample_at(20));
  d.drain.pass(d.rings);
  BOOST_TEST(d.made[0].taken() == 0u);
  BOOST_TEST(d.made[1].taken() == 0u);
}

BOOST_AUTO_TEST_CASE(a_round_ends_when_the_next_one_has_something_to_write) {
  Drained d;
  d.pass_on = [&](const stream::Record& record) { d.writer.write(record.bytes); };
  d.drain.pass(d.rings);
  for (const std::uint64_t time_ns : {10, 20, 30}) {
    d.made[0].write(sample_at(time_ns));
    d.made[0].write(sample_at(time_ns + 1));
    d.drain.pass(d.rings);
    d.drain.pass(d.rings);  // nothing new
  }
  d.drain.finish(d.rings);
  d.writer.flush();
  BOOST_TEST(rounds_in(d.out.text) == 2u);
}

BOOST_AUTO_TEST_CASE(a_loss_stands_where_the_kernel_told_it) {
  Drained d;
  d.made[0].write(sample_at(10));
  d.made[0].write(lost_at(50, 7));
  d.made[0].write(sample_at(50));
  d.made[1].write(sample_at(30));
  d.drain.finish(d.rings);
  BOOST_TEST(d.take() == "10 30 lost 50");
  BOOST_TEST(d.drain.passed().lost.count() == 7u);
}

BOOST_AUTO_TEST_CASE(told_early_a_loss_comes_before_all_that_happened_since_its_ring_was_full) {
  Drained d(true);
  d.made[0].write(sample_at(10));
  d.made[0].write(lost_at(50, 7));
  d.made[0].write(sample_at(50));
  d.made[1].write(sample_at(30));
  d.made[1].write(sample_at(40));
  d.drain.finish(d.rings);
  BOOST_TEST(d.take() == "10 lost 30 40 50");
  BOOST_TEST(d.drain.passed().lost.count() == 7u);
}

BOOST_AUTO_TEST_CASE(told_early_a_loss_remembers_its_ring_s_last_record_over_passes) {
  Drained d(true);
  d.made[0].write(sample_at(10));
  d.made[1].write(sample_at(20));
  d.drain.pass(d.rings);
  d.made[0].write(lost_at(50, 2));
  d.made[0].write(sample_at(51));
  d.made[1].write(sample_at(30));
  d.made[1].write(lost_at(60, 3));
  d.drain.finish(d.rings);
  BOOST_TEST(d.take() == "10 lost 20 30 lost 51");
  BOOST_TEST(d.drain.passed().lost.count() == 5u);
}

BOOST_AUTO_TEST_CASE(told_early_a_loss_at_a_ring_s_beginning_comes_first_of_all) {
  Drained d(true);
  d.made[0].write(sample_at(10));
  d.made[1].write(lost_at(20, 1));
  d.drain.finish(d.rings);
  BOOST_TEST(d.take() == "lost 10");
}

BOOST_AUTO_TEST_CASE(what_comes_in_while_the_last_records_are_written_is_written_too) {
  Drained d;
  std::size_t written = 0;
  d.pass_on = [&](const stream::Record& record) {
    ++written;
    if (stream::time_of(record, d.attr) == 10)
      d.made[1].write(sample_at(100));
  };
  constexpr std::uint64_t kMany = 80;  // more than are written between two looks at the rings
  for (std::uint64_t i = 0; i < kMany; ++i)
    d.made[0].write(sample_at(10 + i));
  d.drain.finish(d.rings);
  BOOST_TEST(d.drain.passed().samples == kMany + 1);
  BOOST_TEST(written == kMany + 1);
}

BOOST_AUTO_TEST_CASE(what_passed_is_counted) {
  Drained d;
  d.made[0].write(sample_at(10, 5));
  d.made[0].write(sample_at(11, 5));
  d.made[0].write(other_at(12, PERF_RECORD_THROTTLE, {0, 0, 0}));
  d.made[0].write(other_at(13, PERF_RECORD_LOST_SAMPLES, {4}));
  d.made[1].write(sample_at(14, 6));
  d.drain.finish(d.rings);
  const recording::Passed& passed = d.drain.passed();
  BOOST_TEST(passed.samples == 3u);
  BOOST_TEST(passed.threads.size() == 2u);
  BOOST_TEST(passed.throttled == 1u);
  BOOST_TEST(passed.lost.count() == 4u);
  BOOST_TEST(!d.drain.urgency_ns().has_value());
}

BOOST_AUTO_TEST_CASE(a_sample_without_a_thread_is_none_of_another_thread) {
  Drained d;
  d.made[0].write(sample_at(10, 7));
  d.made[0].write(sample_at(20, 0xffffffff));
  d.drain.pass(d.rings);
  d.drain.finish(d.rings);
  BOOST_TEST(d.drain.passed().samples == 2U);
  BOOST_TEST(d.drain.passed().threads.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
