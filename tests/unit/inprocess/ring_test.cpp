// SPDX-License-Identifier: MIT
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <span>
#include <vector>

#include "inprocess/sampler/core/ring_writer.h"
#include "inprocess/sampler/ring_reader.h"

namespace {

using namespace pe;
using inprocess::RingWriter;
using inprocess::Sample;
using inprocess::TakenSample;

/// A ring as a thread has it, and whoever reads it.
struct Ring {
  static constexpr std::uint32_t kBytes = 4096;
  inprocess::Thread thread{};
  std::vector<std::byte> bytes{kBytes};

  /// False if there was no room.
  bool write(std::uint32_t tid, const std::vector<std::byte>& stack) {
    RingWriter writer(thread, bytes.data(), kBytes);
    if (!writer.has_room(stack.size()))
      return false;
    // In two parts, as pages are.
    const std::size_t half = stack.size() / 2;
    writer.add_stack(stack.data(), half);
    writer.add_stack(stack.data() + half, stack.size() - half);
    Sample sample{};
    sample.tid = tid;
    writer.finish(sample);
    return true;
  }

  /// What is between tail and head, in one piece; and frees it.
  std::vector<std::byte> take() {
    std::vector<std::byte> all;
    for (; thread.tail != thread.head; ++thread.tail)
      all.push_back(bytes[thread.tail % kBytes]);
    return all;
  }
};

std::vector<std::byte> stack_of(std::size_t size, unsigned seed) {
  std::vector<std::byte> stack(size);
  for (std::size_t i = 0; i < size; ++i)
    stack[i] = static_cast<std::byte>(i * 7 + seed);
  return stack;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sampler_ring)

BOOST_AUTO_TEST_CASE(records_come_out_as_they_went_in_all_around_the_ring) {
  Ring ring;
  unsigned number = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<unsigned> sent;
    for (std::size_t size = 8 * (number % 97); ring.write(number, stack_of(size, number));
         size = 8 * (number % 97))
      sent.push_back(number++);
    BOOST_REQUIRE(!sent.empty());
    std::size_t next = 0;
    const std::vector<std::byte> taken = ring.take();
    const bool is_whole = inprocess::for_each_record(taken, [&](const TakenSample& sample) {
      BOOST_REQUIRE(next < sent.size());
      const unsigned wanted = sent[next++];
      BOOST_TEST(sample.header.tid == wanted);
      const auto stack = stack_of(8 * (wanted % 97), wanted);
      BOOST_TEST(std::ranges::equal(sample.stack, stack));
    });
    BOOST_TEST(is_whole);
    BOOST_TEST(next == sent.size());
  }
  BOOST_TEST(ring.thread.head > 100 * Ring::kBytes);
}

BOOST_AUTO_TEST_CASE(a_full_ring_takes_nothing_and_keeps_what_it_has) {
  Ring ring;
  const std::size_t most = Ring::kBytes - sizeof(Sample);
  BOOST_TEST(!ring.write(1, stack_of(most + 1, 0)));
  BOOST_TEST(ring.write(1, stack_of(most, 0)));
  BOOST_TEST(!ring.write(2, {}));
  unsigned records = 0;
  inprocess::for_each_record(ring.take(), [&](const TakenSample&) { ++records; });
  BOOST_TEST(records == 1U);
  BOOST_TEST(ring.write(3, {}));
}

BOOST_AUTO_TEST_CASE(a_tail_that_makes_no_sense_stops_the_writer) {
  Ring ring;
  ring.thread.tail = 8;  // read before it was written
  BOOST_TEST(!ring.write(1, {}));
}

BOOST_AUTO_TEST_CASE(an_odd_stack_is_filled_up_to_a_word) {
  Ring ring;
  ring.write(1, stack_of(13, 0));
  BOOST_TEST(ring.thread.head % 8 == 0U);
  std::size_t size = 0;
  BOOST_TEST(inprocess::for_each_record(
      ring.take(), [&](const TakenSample& sample) { size = sample.stack.size(); }));
  BOOST_TEST(size == 13U);
}

BOOST_AUTO_TEST_CASE(records_that_contradict_themselves_end_the_reading) {
  Ring ring;
  ring.write(1, stack_of(64, 0));
  ring.write(2, stack_of(64, 0));
  const std::vector<std::byte> good = ring.take();
  const auto read = [](std::vector<std::byte> bytes, std::size_t at, std::uint64_t value,
                       std::size_t size) {
    std::memcpy(bytes.data() + at, &value, size);
    int records = 0;
    const bool is_whole = inprocess::for_each_record(bytes, [&](const TakenSample&) { ++records; });
    return is_whole ? -1 : records;
  };
  const std::size_t second = good.size() / 2;
  const std::size_t stack_bytes = offsetof(Sample, stack_bytes);
  BOOST_TEST(read(good, 0, good.size() / 2, 4) == -1);  // as it is
  for (const std::uint64_t size : {0UL, 1UL, 168UL, 239UL, 1UL << 31})
    BOOST_TEST(read(good, second, size, 4) == 1);
  for (const std::uint64_t size : {~0UL, ~0UL - 200, 1UL << 63, 65UL + 8, 0UL})
    BOOST_TEST(read(good, second + stack_bytes, size, 8) == 1);
  BOOST_TEST(!inprocess::for_each_record(Bytes(good).first(100), [](const TakenSample&) {}));
}

BOOST_AUTO_TEST_SUITE_END()
