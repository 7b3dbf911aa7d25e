// SPDX-License-Identifier: MIT
#include "recording/bpf/bpf_engine.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "stream/records/sample.h"
#include "stream/user_copy.h"

using pe::unwind::Frame;
using pe::unwind::FrameSource;
using pe::unwind::kPassedRegisters;
using pe::unwind::kPassedStackBytes;
using pe::unwind::SampleRecord;

BOOST_AUTO_TEST_SUITE(kernel_samples)

namespace {

perf_event_attr layout() {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = pe::stream::wanted_user_regs();
  attr.sample_stack_user = kPassedStackBytes;
  return attr;
}

constexpr SampleRecord kTaken{.kind = pe::unwind::kRecordWholeStack,
                              .cpu = 3,
                              .time_ns = 123'456,
                              .tgid = 42,
                              .tid = 43,
                              .user_stack = 0,
                              .kernel_stack = 0,
                              .ip = 0xffffffff81000010,
                              .period = 1'003'009,
                              .cookie = 77,
                              .is_kernel_mode = 1,
                              .running = 0,
                              .length = 0,
                              .kernel_frames = 0,
                              .stop = pe::unwind::kStopEndOfStack};

std::vector<std::uint64_t> numbers(const pe::stream::U64View& view) {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < view.size(); ++i)
    all.push_back(view[i]);
  return all;
}

/// kPassedRegisters of them, each its DWARF number and 1000.
std::array<std::uint64_t, kPassedRegisters> registers() {
  std::array<std::uint64_t, kPassedRegisters> values{};
  for (std::size_t number = 0; number < values.size(); ++number)
    values[number] = 1000 + number;
  return values;
}

constexpr std::array<std::byte, 64> kMemory{};

}  // namespace

BOOST_AUTO_TEST_CASE(a_walked_stack_becomes_a_call_chain_with_its_marks) {
  const std::array<std::uint64_t, 2> kernel{0xffffffff81000010, 0xffffffff81000020};
  // What a signal interrupted counts as a return address, as those who read call chains expect.
  const std::array<std::uint64_t, 3> user{
      std::bit_cast<std::uint64_t>(Frame(0x1000, FrameSource::kCfi, true)),
      std::bit_cast<std::uint64_t>(Frame(0x2000, FrameSource::kCfi, true)),
      std::bit_cast<std::uint64_t>(Frame(0x3000, FrameSource::kFramePointer, false))};
  pe::recording::KernelSamples samples(layout());
  const auto record =
      samples.record_of({kTaken, {.frames = user}, {.frames = kernel, .is_kernel = true}});
  BOOST_TEST(record.misc == (PERF_RECORD_MISC_KERNEL | pe::stream::kMiscComplete));
  const auto sample = pe::stream::parse_sample(record, layout());
  BOOST_TEST_REQUIRE(sample.has_value());
  BOOST_TEST(sample->ip == kTaken.ip);
  BOOST_TEST(sample->pid == 42u);
  BOOST_TEST(sample->tid == 43u);
  BOOST_TEST(sample->time_ns == 123'456u);
  BOOST_TEST(sample->cpu == 3u);
  BOOST_TEST(sample->period == 1'003'009u);
  BOOST_TEST(!sample->has_user_copy());
  const std::vector<std::uint64_t> expected{
      PERF_CONTEXT_KERNEL, kernel[0], kernel[1], PERF_CONTEXT_USER, 0x1000, 0x2001, 0x3000};
  BOOST_TEST(numbers(sample->callchain) == expected, boost::test_tools::per_element());
  BOOST_TEST(samples.frames().size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_thinned_sample_has_no_stack_yet) {
  SampleRecord taken = kTaken;
  taken.kind = pe::unwind::kRecordThinned;
  pe::recording::KernelSamples samples(layout());
  const auto record = samples.record_of({taken, {}});
  BOOST_TEST(record.misc == (PERF_RECORD_MISC_KERNEL | pe::recording::kMiscThinned));
  const auto sample = pe::stream::parse_sample(record, layout());
  BOOST_TEST_REQUIRE(sample.has_value());
  BOOST_TEST(sample->ip == kTaken.ip);
  BOOST_TEST(sample->callchain.size() == 0u);
}

BOOST_AUTO_TEST_CASE(how_a_walk_in_the_kernel_ended_is_in_the_misc_field) {
  const std::array<std::uint64_t, 1> user{
      std::bit_cast<std::uint64_t>(Frame(0x1000, FrameSource::kCfi, false))};
  SampleRecord taken = kTaken;
  taken.stop = pe::unwind::kStopUnmapped;
  pe::recording::KernelSamples samples(layout());
  BOOST_TEST(samples.record_of({taken, {.frames = user}, {}}).misc ==
             (PERF_RECORD_MISC_KERNEL | pe::stream::kMiscIncomplete));
  // Neither a kernel thread nor a copy was walked.
  BOOST_TEST(samples.record_of({taken, {}, {}}).misc == PERF_RECORD_MISC_KERNEL);
  const auto values = registers();
  BOOST_TEST(samples.record_of({taken, {.frames = user}, {}, values, kMemory}).misc ==
             PERF_RECORD_MISC_KERNEL);
}

BOOST_AUTO_TEST_CASE(a_kernel_thread_has_no_part_of_a_program) {
  const std::array<std::uint64_t, 1> kernel{0xffffffff81000010};
  pe::recording::KernelSamples samples(layout());
  const auto sample = pe::stream::parse_sample(
      samples.record_of({kTaken, {}, {.frames = kernel, .is_kernel = true}}), layout());
  BOOST_TEST_REQUIRE(sample.has_value());
  BOOST_TEST(sample->callchain.size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_is_passed_on_comes_with_registers_and_memory) {
  const auto values = registers();
  pe::recording::KernelSamples samples(layout());
  const auto sample =
      pe::stream::parse_sample(samples.record_of({kTaken, {}, {}, values, kMemory}), layout());
  BOOST_TEST_REQUIRE(sample.has_value());
  BOOST_TEST(sample->has_user_copy());
  BOOST_TEST(sample->callchain.size() == 0u);
  BOOST_TEST(sample->user_stack.size() == kMemory.size());
  BOOST_TEST(!sample->has_full_copy());
  unsigned seen = 0;
  pe::stream::for_each_register(*sample, layout().sample_regs_user,
                                [&](unsigned number, std::uint64_t value) {
                                  BOOST_TEST(value == 1000 + number);
                                  ++seen;
                                });
  BOOST_TEST(seen == kPassedRegisters);
  BOOST_TEST(samples.frames().empty());
}

BOOST_AUTO_TEST_CASE(a_piece_as_long_as_can_be_may_go_on_behind) {
  const auto values = registers();
  const std::vector<std::byte> memory(kPassedStackBytes);
  const std::vector<std::uint64_t> kernel(pe::unwind::kMaxKernelFrames, 0xffffffff81000010);
  pe::recording::KernelSamples samples(layout());
  const auto sample = pe::stream::parse_sample(
      samples.record_of({kTaken, {}, {.frames = kernel}, values, memory}), layout());
  BOOST_TEST_REQUIRE(sample.has_value());
  BOOST_TEST(sample->has_full_copy());
  BOOST_TEST(sample->callchain.size() == kernel.size() + 1);
}

BOOST_AUTO_TEST_CASE(a_32_bit_program_has_its_own_registers) {
  SampleRecord taken = kTaken;
  taken.stop = pe::unwind::kStopNot64Bit;
  const auto values = registers();
  pe::recording::KernelSamples samples(layout());
  const auto sample =
      pe::stream::parse_sample(samples.record_of({taken, {}, {}, values, kMemory}), layout());
  BOOST_TEST_REQUIRE(sample.has_value());
  BOOST_TEST(sample->user_regs_abi == PERF_SAMPLE_REGS_ABI_32);
  BOOST_TEST(pe::stream::user_ip(*sample, layout().sample_regs_user).value() == 1016u);
}

BOOST_AUTO_TEST_SUITE_END()
