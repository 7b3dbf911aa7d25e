// SPDX-License-Identifier: MIT
#include "recording/waits/wait_writer.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <unordered_set>

#include "stream/session.h"
#include "support/memory_input.h"
#include "support/string_output.h"

using pe::waits::Stack;
using pe::waits::WaitWriter;

BOOST_AUTO_TEST_SUITE(wait_writer)

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kId = 7, kWakerId = 8;

struct Written {
  Written() {
    stream.write_header();
    stream.write_attr(pe::waits::wait_attr({}), std::vector{kId, kWakerId, kWakerId + 1});
  }
  /// A wait of thread 5 that ended at `end_ns`.
  void add(std::uint64_t end_ns, std::uint64_t length_ns, std::uint64_t address,
           bool is_unfinished = false) {
    const Stack stack{.ip = address, .misc = PERF_RECORD_MISC_KERNEL, .chain = {address, 2}};
    waits.add({4, 5, end_ns, length_ns, stack, is_unfinished});
  }
  /// A wait of thread 5 that thread `waker` ended.
  void add_woken(std::uint64_t end_ns, std::uint64_t length_ns, std::uint32_t waker) {
    const Stack stack{.ip = 100, .misc = PERF_RECORD_MISC_KERNEL, .chain = {100, 2}};
    const pe::waits::WokenBy by{
        .pid = 6,
        .tid = waker,
        .stack = {.ip = waker, .misc = PERF_RECORD_MISC_KERNEL, .chain = {waker, 2}}};
    waits.add({4, 5, end_ns, length_ns, stack, false, {&by, 1}});
  }
  /// The samples that a reader finds: "time:period@address", with "+" if unfinished.
  std::string read() {
    stream.write_end();
    auto input = pe::testing::memory_input(out.text);
    pe::stream::Session session(input);
    std::string text;
    while (const auto record = session.next())
      if (const auto& sample = session.sample())
        text += (text.empty() ? "" : " ") + std::to_string(sample->time_ns / kMillisecond) + ":" +
                std::to_string(sample->period) + "@" + std::to_string(sample->callchain[0]) +
                ((record->misc & pe::stream::kMiscUnfinished) != 0 ? "+" : "");
    BOOST_TEST(session.damage() == "");
    return text;
  }

  pe::StringOutput out;
  pe::stream::StreamWriter stream{out};
  WaitWriter waits{stream, kId, kWakerId};
};

}  // namespace

BOOST_AUTO_TEST_CASE(who_ended_a_wait_stands_before_it_and_keeps_waits_apart) {
  Written w;
  w.add_woken(1 * kMillisecond, 10, 60);
  w.add_woken(2 * kMillisecond, 20, 70);
  w.add_woken(3 * kMillisecond, 30, 60);
  w.add(4 * kMillisecond, 40, 100);
  w.waits.flush(9 * kMillisecond);
  BOOST_TEST(w.read() == "9:40@60 9:40@100 9:20@70 9:20@100 9:40@100");
  BOOST_TEST((w.waits.processes() == std::unordered_set<std::uint32_t>{4, 6}));
}

BOOST_AUTO_TEST_CASE(the_waker_of_a_waker_comes_before_it) {
  Written w;
  const Stack stack{.ip = 100, .misc = PERF_RECORD_MISC_KERNEL, .chain = {100, 2}};
  const auto by = [](std::uint32_t tid) {
    return pe::waits::WokenBy{
        .pid = 6,
        .tid = tid,
        .stack = {.ip = tid, .misc = PERF_RECORD_MISC_KERNEL, .chain = {tid}}};
  };
  const pe::waits::WokenBy two[] = {by(60), by(70)};
  const pe::waits::WokenBy others[] = {by(60), by(80)};
  w.waits.add({4, 5, kMillisecond, 10, stack, false, two});
  w.waits.add({4, 5, kMillisecond, 20, stack, false, others});
  w.waits.add({4, 5, kMillisecond, 30, stack, false, two});
  w.waits.flush(9 * kMillisecond);
  BOOST_TEST(w.read() == "9:40@70 9:40@60 9:40@100 9:20@80 9:20@60 9:20@100");
}

BOOST_AUTO_TEST_CASE(waits_for_different_locks_are_different_samples) {
  pe::StringOutput out;
  pe::stream::StreamWriter stream(out);
  stream.write_header();
  const perf_event_attr attr = pe::waits::wait_attr({}, true);
  stream.write_attr(attr, std::vector{kId});
  WaitWriter waits(stream, kId, 0, true);
  const Stack stack{.ip = 100, .misc = PERF_RECORD_MISC_USER, .chain = {100, 2}};
  for (const std::uint64_t lock : {0x1000, 0x2000, 0x1000})
    waits.add({4, 5, kMillisecond, 10, stack, false, {}, lock});
  waits.flush(2 * kMillisecond);
  stream.write_end();
  auto input = pe::testing::memory_input(out.text);
  pe::stream::Session session(input);
  std::string text;
  while (session.next())
    if (const auto& sample = session.sample())
      text += std::to_string(sample->data_address) + ":" + std::to_string(sample->period) + "@" +
              std::to_string(sample->callchain[0]) + " ";
  BOOST_TEST(text == "4096:20@100 8192:10@100 ");
}

BOOST_AUTO_TEST_CASE(waits_in_one_place_within_10_ms_are_one_sample) {
  Written w;
  w.add(1 * kMillisecond, 10, 100);
  w.add(2 * kMillisecond, 20, 200);
  w.add(3 * kMillisecond, 30, 100);
  w.add(12 * kMillisecond, 40, 100);
  w.waits.flush(15 * kMillisecond);
  BOOST_TEST(w.read() == "11:40@100 11:20@200 15:40@100");
}

BOOST_AUTO_TEST_CASE(what_is_held_is_written_when_its_time_has_come) {
  Written w;
  w.add(1 * kMillisecond, 10, 100);
  const std::size_t before = w.out.text.size();
  w.waits.reach(10 * kMillisecond);
  BOOST_TEST(w.out.text.size() == before);
  w.waits.reach(11 * kMillisecond);
  BOOST_TEST(w.read() == "11:10@100");
}

BOOST_AUTO_TEST_CASE(waits_that_have_not_ended_stand_alone) {
  Written w;
  w.add(1 * kMillisecond, 10, 100);
  w.add(1 * kMillisecond, 20, 100, true);
  w.waits.flush(2 * kMillisecond);
  BOOST_TEST(w.read() == "2:10@100 2:20@100+");
}

BOOST_AUTO_TEST_CASE(waits_that_are_kept_apart_have_their_own_ends) {
  Written written;
  written.waits.keep_apart();
  written.add(20 * kMillisecond, 3, 100);
  written.add(21 * kMillisecond, 4, 100);
  BOOST_TEST(written.read() == "20:3@100 21:4@100");
}

BOOST_AUTO_TEST_SUITE_END()
