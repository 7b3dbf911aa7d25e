// SPDX-License-Identifier: MIT
#include "recording/waits/passed_switches.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "stream/user_copy.h"
#include "support/string_output.h"

using namespace pe;
using unwind::SampleRecord;
using waits::PassedSwitches;

BOOST_AUTO_TEST_SUITE(passed_switches)

namespace {

constexpr std::uint64_t kId = 77;

/// The layout in which the engine requests records about processes.
perf_event_attr side_layout() {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
  attr.sample_id_all = 1;
  return attr;
}

/// A thread leaves its CPU.
SampleRecord left_at(std::uint64_t time_ns, std::uint32_t tid = 43) {
  SampleRecord record{};
  record.kind = unwind::kRecordPassedOn;
  record.cpu = 3;
  record.time_ns = time_ns;
  record.tgid = 42;
  record.tid = tid;
  return record;
}

/// A thread runs again.
struct Ended {
  SampleRecord record;
  unwind::EndedWait wait;
};

/// The thread runs again; it left at `since_ns`.
Ended back_at(std::uint64_t time_ns, std::uint64_t since_ns, std::uint32_t tid = 43) {
  Ended ended{.record = left_at(time_ns, tid), .wait = {}};
  ended.record.kind = unwind::kRecordWaitEnded;
  ended.wait.key.tid = tid;
  ended.wait.since_ns = since_ns;
  return ended;
}

/// The thread ends the wait of another one.
SampleRecord wakes_at(std::uint64_t time_ns, std::uint32_t tid = 43) {
  SampleRecord record = left_at(time_ns, tid);
  record.kind = unwind::kRecordPassedWaker;
  return record;
}

std::vector<std::uint64_t> numbers_of(const stream::U64View& view) {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < view.size(); ++i)
    all.push_back(view[i]);
  return all;
}

/// Does the engine's part: gives each walked sample back, and prints the waits.
struct Engine {
  Engine()
      : stream(writer, layout, {.may_keep_binaries = false}, budget,
               {.pass_on = [this](const stream::Record& record) { take(record); }}) {}
  void take(const stream::Record& record) {
    const auto sample = stream::parse_sample(record, stream.stated(layout));
    BOOST_TEST_REQUIRE(sample.has_value());
    order += (order.empty() ? "" : " ") + std::to_string(sample->time_ns);
    passed.take(*sample, record.misc);
  }
  /// The test recognises the sample by `ip`, its instruction pointer.
  void leave(const SampleRecord& record, std::uint64_t ip,
             const std::vector<std::uint64_t>& kernel_frames = {}) {
    registers.front() = 1;  // a thread whose registers are all zero has just begun
    registers.back() = ip;
    passed.hold({record, {}, {}, registers, memory},
                {.frames = kernel_frames, .is_kernel = !kernel_frames.empty()});
  }
  void come_back(const Ended& ended) {
    passed.hold({.record = ended.record, .stack = {}, .ended = &ended.wait}, {});
  }
  /// Returns one word for each wait that ends until `until_ns`: "tid:length", with "@ip" of its
  /// stack.
  std::string walk(std::uint64_t until_ns) {
    std::string text;
    passed.walk_until(until_ns, [&](const unwind::EndedWait& wait, std::uint64_t end_ns) {
      text += (text.empty() ? "" : " ") + std::to_string(wait.key.tid) + ":" +
              std::to_string(end_ns - wait.since_ns);
      if (const auto* stack = passed.stack_since(wait.key.tid, wait.since_ns, end_ns))
        text += "@" + std::to_string(stack->ip);
    });
    return text;
  }

  perf_event_attr layout = waits::passed_layout(side_layout());
  StringOutput out;
  stream::StreamWriter writer{out};
  Budget budget;
  recording::RecordedStream stream;
  waits::ChainWriter chains;
  PassedSwitches passed{stream, layout, kId, chains};
  std::vector<std::uint64_t> registers = std::vector<std::uint64_t>(17);
  std::vector<std::byte> memory = std::vector<std::byte>(64);
  std::string order;  ///< times of the samples, in the order in which they came back
};

constexpr std::uint64_t kAlways = ~std::uint64_t{0};

/// The sample that one switch becomes, before its stack is walked.
struct HeldSample {
  HeldSample(const unwind::Sample& switched, const unwind::StackOfKernel& kernel)
      : stream(writer, layout, {.keep_stacks = true, .may_keep_binaries = false}, budget,
               {.pass_on = [this](const stream::Record& record) {
                 misc = record.misc;
                 bytes.assign(reinterpret_cast<const char*>(record.bytes.data()),
                              record.bytes.size());
               }}) {
    PassedSwitches passed(stream, layout, kId, chains);
    passed.hold(switched, kernel);
    passed.walk_until(kAlways,
                      [](const unwind::EndedWait&, std::uint64_t) { BOOST_ERROR("a wait"); });
    if (!bytes.empty())
      sample = stream::parse_sample(stream::view_record(std::as_bytes(std::span(bytes))), layout);
  }

  perf_event_attr layout = waits::passed_layout(side_layout());
  StringOutput out;
  stream::StreamWriter writer{out};
  Budget budget;
  recording::RecordedStream stream;
  waits::ChainWriter chains;
  std::string bytes;
  std::uint16_t misc = 0;
  std::optional<stream::Sample> sample;
};

std::array<std::uint64_t, 17> numbered_registers() {
  std::array<std::uint64_t, 17> values{};
  for (std::size_t number = 0; number < values.size(); ++number)
    values[number] = 1000 + number;
  return values;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_switch_becomes_a_sample_with_registers_and_a_copy_of_the_stack) {
  const auto values = numbered_registers();
  const std::vector<std::byte> memory(24, std::byte{0x5a});
  const std::vector<std::uint64_t> kernel{0x1234, 0x5678};
  const SampleRecord record = left_at(123);
  const HeldSample held({record, {}, {}, values, memory}, {.frames = kernel, .is_kernel = true});
  BOOST_TEST_REQUIRE(held.sample.has_value());
  const stream::Sample& sample = *held.sample;
  BOOST_TEST(held.misc == PERF_RECORD_MISC_KERNEL);
  BOOST_TEST(sample.ip == 0x1234u);
  BOOST_TEST(sample.pid == 42u);
  BOOST_TEST(sample.tid == 43u);
  BOOST_TEST(sample.time_ns == 123u);
  BOOST_TEST(sample.cpu == 3u);
  BOOST_TEST(sample.period == 1u);
  const std::vector<std::uint64_t> chain{PERF_CONTEXT_KERNEL, 0x1234, 0x5678};
  BOOST_TEST(numbers_of(sample.callchain) == chain, boost::test_tools::per_element());
  unsigned seen = 0;
  stream::for_each_register(sample, held.layout.sample_regs_user,
                            [&](unsigned number, std::uint64_t value) {
                              BOOST_TEST(value == 1000 + number);
                              ++seen;
                            });
  BOOST_TEST(seen == 17u);
  BOOST_TEST((std::vector(sample.user_stack.begin(), sample.user_stack.end()) == memory));
  BOOST_TEST(held.bytes.size() % 8 == 0u);
}

BOOST_AUTO_TEST_CASE(without_a_kernel_stack_it_is_the_program_s) {
  const auto values = numbered_registers();
  const SampleRecord record = left_at(123);
  const HeldSample held({record, {}, {}, values, {}}, {});
  BOOST_TEST_REQUIRE(held.sample.has_value());
  BOOST_TEST(held.misc == PERF_RECORD_MISC_USER);
  BOOST_TEST(held.sample->ip == 1016u);
  BOOST_TEST(held.sample->callchain.size() == 0u);
  BOOST_TEST(held.sample->user_stack.empty());
  BOOST_TEST(held.sample->user_part.end == held.bytes.size());
  BOOST_TEST(held.sample->has_user_copy());
}

BOOST_AUTO_TEST_CASE(a_copy_that_is_not_in_whole_words_is_filled_up) {
  const auto values = numbered_registers();
  const std::vector<std::byte> memory(13, std::byte{0x5a});
  const SampleRecord record = left_at(123);
  const HeldSample held({record, {}, {}, values, memory}, {});
  BOOST_TEST_REQUIRE(held.sample.has_value());
  BOOST_TEST(
      (std::vector(held.sample->user_stack.begin(), held.sample->user_stack.end()) == memory));
  BOOST_TEST(held.bytes.size() % 8 == 0u);
}

BOOST_AUTO_TEST_CASE(a_switch_without_registers_cannot_be_walked) {
  const SampleRecord record = left_at(123);
  const HeldSample held({record, {}}, {});
  BOOST_TEST(!held.sample.has_value());
}

BOOST_AUTO_TEST_CASE(a_wait_has_the_stack_of_its_switch) {
  Engine engine;
  engine.leave(left_at(100), 0x1000);
  engine.come_back(back_at(130, 100));
  BOOST_TEST(engine.walk(kAlways) == "43:30@4096");
}

BOOST_AUTO_TEST_CASE(records_are_taken_in_the_order_of_time_and_not_too_early) {
  Engine engine;
  engine.come_back(back_at(130, 100));
  engine.leave(left_at(100), 0x1000);
  engine.leave(left_at(90, 44), 0x2000);
  BOOST_TEST(engine.walk(129) == "");
  BOOST_TEST(engine.order == "90 100");
  BOOST_TEST(engine.walk(130) == "43:30@4096");
  BOOST_TEST(engine.walk(kAlways) == "");
  BOOST_TEST(engine.order == "90 100");
}

BOOST_AUTO_TEST_CASE(a_wait_whose_switch_was_lost_has_no_stack) {
  Engine engine;
  engine.leave(left_at(100), 0x1000);
  engine.come_back(back_at(250, 200));
  engine.come_back(back_at(260, 240, 44));
  BOOST_TEST(engine.walk(kAlways) == "43:50 44:20");
}

BOOST_AUTO_TEST_CASE(a_stack_stands_until_the_thread_s_next_switch_or_its_end) {
  Engine engine;
  engine.leave(left_at(100), 0x1000);
  engine.leave(left_at(110, 44), 0x2000);
  engine.walk(kAlways);
  BOOST_TEST_REQUIRE(engine.passed.stack_since(43, 100, kAlways) != nullptr);
  BOOST_TEST(engine.passed.stack_since(43, 100, kAlways)->ip == 0x1000u);
  BOOST_TEST(engine.passed.stack_since(43, 100, kAlways)->cpu == 3u);
  BOOST_TEST(engine.passed.stack_since(43, 100, kAlways)->misc ==
             (PERF_RECORD_MISC_USER | pe::stream::kMiscIncomplete));
  BOOST_TEST(engine.passed.stack_since(43, 99, kAlways) == nullptr);
  BOOST_TEST(engine.passed.stack_since(45, 100, kAlways) == nullptr);
  engine.leave(left_at(200), 0x3000);
  engine.walk(kAlways);
  BOOST_TEST(engine.passed.stack_since(43, 100, kAlways) == nullptr);
  BOOST_TEST(engine.passed.stack_since(43, 200, kAlways)->ip == 0x3000u);
  engine.passed.end_thread(43, 210);
  engine.passed.forget_ended();
  BOOST_TEST(engine.passed.stack_since(43, 200, kAlways) == nullptr);
  BOOST_TEST(engine.passed.stack_since(44, 110, kAlways)->ip == 0x2000u);
}

BOOST_AUTO_TEST_CASE(a_stack_that_was_copied_after_the_wait_had_ended_is_another_one) {
  Engine engine;
  engine.registers.front() = 1;
  engine.passed.hold({left_at(100), {}, {}, engine.registers, engine.memory}, {}, {.at_ns = 150});
  BOOST_TEST(engine.passed.held_bytes() > 0U);
  engine.walk(100);
  BOOST_TEST(engine.passed.held_bytes() == 0U);
  BOOST_TEST(engine.passed.stack_since(43, 100, 149) == nullptr);
  BOOST_TEST(engine.passed.stack_since(43, 100, 150) != nullptr);
  engine.leave(left_at(200), 0x3000);
  engine.walk(kAlways);
  BOOST_TEST(engine.passed.stack_since(43, 200, 201) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_read_after_the_end_of_its_thread_has_its_stack) {
  Engine engine;
  engine.leave(left_at(100), 0x1000);
  engine.walk(100);
  engine.passed.end_thread(43, 140);
  engine.come_back(back_at(130, 100));
  BOOST_TEST(engine.walk(kAlways) == "43:30@4096");
}

BOOST_AUTO_TEST_CASE(a_thread_with_the_number_of_one_that_has_ended_keeps_its_stack) {
  Engine engine;
  engine.leave(left_at(100), 0x1000);
  engine.passed.end_thread(43, 140);
  engine.leave(left_at(150), 0x3000);
  engine.walk(kAlways);
  engine.passed.forget_ended();
  BOOST_TEST_REQUIRE(engine.passed.stack_since(43, 150, kAlways) != nullptr);
  engine.passed.end_thread(43, 160);
  engine.passed.forget_ended();
  BOOST_TEST(engine.passed.stack_since(43, 150, kAlways) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_waker_has_its_stack_of_that_time_and_keeps_the_one_of_its_own_wait) {
  Engine engine;
  engine.leave(left_at(100, 44), 0x1000);
  engine.leave(wakes_at(120, 44), 0x2000);
  engine.leave(wakes_at(120, 45), 0x3000);
  engine.leave(wakes_at(130, 44), 0x4000);
  engine.walk(kAlways);
  const auto ip_at = [&](std::uint64_t time_ns, std::uint32_t tid) {
    const waits::Stack* stack = engine.passed.waker_stack(tid, time_ns);
    return stack != nullptr ? stack->ip : 0;
  };
  BOOST_TEST(ip_at(120, 44) == 0x2000U);
  BOOST_TEST(ip_at(120, 45) == 0x3000U);
  BOOST_TEST(ip_at(130, 44) == 0x4000U);
  BOOST_TEST(ip_at(100, 44) == 0U);
  BOOST_TEST(engine.passed.stack_since(44, 100, kAlways)->ip == 0x1000U);
  BOOST_TEST(engine.passed.stack_since(44, 120, kAlways) == nullptr);
}

BOOST_AUTO_TEST_CASE(only_the_last_wakers_are_kept) {
  Engine engine;
  for (std::uint64_t time_ns = 1; time_ns <= 4100; ++time_ns)
    engine.leave(wakes_at(time_ns), 0x1000);
  engine.walk(kAlways);
  BOOST_TEST(engine.passed.waker_stack(43, 4) == nullptr);
  BOOST_TEST(engine.passed.waker_stack(43, 5) != nullptr);
  BOOST_TEST(engine.passed.waker_stack(43, 4100) != nullptr);
}

BOOST_AUTO_TEST_CASE(wakers_with_long_stacks_are_fewer) {
  // 2^20 words are kept: 174 stacks of 6,000 frames and a few marks.
  Engine engine;
  const std::vector<std::uint64_t> frames(6000, 0xffff'ffff'8100'0000);
  for (std::uint64_t time_ns = 1; time_ns <= 400; ++time_ns)
    engine.leave(wakes_at(time_ns), 0x1000, frames);
  engine.walk(kAlways);
  BOOST_TEST(engine.passed.waker_stack(43, 400 - 180) == nullptr);
  BOOST_TEST(engine.passed.waker_stack(43, 400 - 170) != nullptr);
  BOOST_TEST(engine.passed.waker_stack(43, 400) != nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
