// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "recording/signal/core/ring_writer.h"
#include "recording/signal/script_words.h"
#include "stream/records/sample.h"

namespace {

using namespace pe;
using inprocess::RingWriter;
using inprocess::SampleHead;

/// A ring as a thread has it, and whoever reads it.
struct Ring {
  static constexpr std::uint32_t kBytes = 4096;
  inprocess::Thread thread{};
  std::vector<std::byte> bytes{kBytes};

  /// False if there was no room.
  bool write(std::uint32_t tid, const std::vector<std::byte>& stack, bool is_cut = false) {
    RingWriter writer(thread, bytes.data(), kBytes);
    if (!writer.has_room(stack.size()))
      return false;
    // In two parts, as pages are.
    const std::size_t half = stack.size() / 2;
    writer.add_stack(stack.data(), half);
    writer.add_stack(stack.data() + half, stack.size() - half);
    SampleHead head{};
    head.tid = tid;
    head.abi = PERF_SAMPLE_REGS_ABI_64;
    writer.finish(head, is_cut);
    return true;
  }

  /// The bytes between tail and head, in one piece; frees their room.
  std::vector<std::byte> take() {
    std::vector<std::byte> all;
    for (; thread.tail != thread.head; ++thread.tail)
      all.push_back(bytes[thread.tail % kBytes]);
    return all;
  }
};

/// Reads whole records; false if other bytes follow.
bool for_each_sample(Bytes bytes, const std::function<void(const stream::Sample&)>& on_sample) {
  ByteReader reader(bytes);
  while (const auto record = stream::take_record(reader)) {
    const auto sample = stream::parse_sample(*record, inprocess::sample_attr(99, Ring::kBytes));
    BOOST_REQUIRE(sample.has_value());
    BOOST_TEST(sample->user_part.end == record->bytes.size());
    on_sample(*sample);
  }
  return reader.empty();
}

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
    const bool is_whole = for_each_sample(taken, [&](const stream::Sample& sample) {
      BOOST_REQUIRE(next < sent.size());
      const unsigned wanted = sent[next++];
      BOOST_TEST(sample.tid == wanted);
      const auto stack = stack_of(8 * (wanted % 97), wanted);
      BOOST_TEST(std::ranges::equal(sample.user_stack, stack));
    });
    BOOST_TEST(is_whole);
    BOOST_TEST(next == sent.size());
  }
  BOOST_TEST(ring.thread.head > 100 * Ring::kBytes);
}

// With ThreadSanitizer this shows that the reader sees no byte before it is written, and that the
// writer overwrites none before it is read.
BOOST_AUTO_TEST_CASE(a_reader_in_another_thread_sees_whole_records_in_order) {
  constexpr std::uint32_t kRecords = 3000;
  Ring ring;
  std::thread writer([&ring] {
    for (std::uint32_t number = 0; number < kRecords;)
      if (ring.write(number, stack_of(8 * (number % 97), number)))
        ++number;
      else
        std::this_thread::yield();
  });
  std::uint32_t next = 0;
  std::uint64_t tail = 0;
  while (next < kRecords) {
    const std::uint64_t head = inprocess::load_published(ring.thread.head);
    std::vector<std::byte> bytes;
    for (; tail != head; ++tail)
      bytes.push_back(ring.bytes[tail % Ring::kBytes]);
    inprocess::publish(ring.thread.tail, tail);
    const bool is_whole = for_each_sample(bytes, [&](const stream::Sample& sample) {
      BOOST_TEST(sample.tid == next);
      BOOST_TEST(std::ranges::equal(sample.user_stack, stack_of(8 * (next % 97), next)));
      ++next;
    });
    BOOST_REQUIRE(is_whole);
  }
  writer.join();
}

BOOST_AUTO_TEST_CASE(a_full_ring_takes_nothing_and_keeps_what_it_has) {
  Ring ring;
  const std::size_t most = Ring::kBytes - inprocess::record_bytes(0);
  BOOST_TEST(!ring.write(1, stack_of(most + 1, 0)));
  BOOST_TEST(ring.write(1, stack_of(most, 0)));
  BOOST_TEST(!ring.write(2, {}));
  unsigned records = 0;
  for_each_sample(ring.take(), [&](const stream::Sample&) { ++records; });
  BOOST_TEST(records == 1U);
  BOOST_TEST(ring.write(3, {}));
}

BOOST_AUTO_TEST_CASE(a_tail_that_makes_no_sense_stops_the_writer) {
  Ring ring;
  ring.thread.tail = 8;  // read before it was written
  BOOST_TEST(!ring.write(1, {}));
}

BOOST_AUTO_TEST_CASE(an_odd_stack_is_copied_up_to_its_last_whole_word) {
  Ring ring;
  ring.write(1, stack_of(13, 0));
  BOOST_TEST(ring.thread.head % 8 == 0U);
  std::size_t size = 0;
  BOOST_TEST(for_each_sample(
      ring.take(), [&](const stream::Sample& sample) { size = sample.user_stack.size(); }));
  BOOST_TEST(size == 8U);
}

BOOST_AUTO_TEST_CASE(a_record_shows_whether_its_stack_is_cut) {
  Ring ring;
  std::vector<bool> cut;
  for (const std::size_t size : {0U, 13U, 64U})
    for (const bool is_cut : {false, true})
      ring.write(1, stack_of(size, 0), is_cut);
  BOOST_TEST(for_each_sample(
      ring.take(), [&](const stream::Sample& sample) { cut.push_back(sample.has_full_copy()); }));
  BOOST_TEST(cut == (std::vector<bool>{false, true, false, true, false, true}));
}

BOOST_AUTO_TEST_CASE(a_record_of_words_appears_with_the_sample_that_follows) {
  Ring ring;
  RingWriter writer(ring.thread, ring.bytes.data(), Ring::kBytes);
  writer.begin_words(77, inprocess::record_bytes(8));
  BOOST_TEST(writer.add_words({5, 6}));
  writer.finish_words(1);
  BOOST_TEST(ring.thread.head == 0U);
  SampleHead head{};
  head.abi = PERF_SAMPLE_REGS_ABI_64;
  writer.add_stack(stack_of(8, 0).data(), 8);
  writer.finish(head, false);
  const std::vector<std::byte> bytes = ring.take();
  ByteReader reader(bytes);
  const auto words = stream::take_record(reader);
  BOOST_TEST_REQUIRE(words.has_value());
  BOOST_TEST(words->type == 77U);
  BOOST_TEST(words->misc == 1U);
  BOOST_TEST(words->bytes.size() == 24U);
  BOOST_TEST(ByteReader(words->body()).take<std::uint64_t>().value() == 5U);
  unsigned samples = 0;
  BOOST_TEST(for_each_sample(Bytes(bytes).subspan(24), [&](const auto&) { ++samples; }));
  BOOST_TEST(samples == 1U);
}

BOOST_AUTO_TEST_CASE(words_leave_room_for_their_sample) {
  Ring ring;
  RingWriter writer(ring.thread, ring.bytes.data(), Ring::kBytes);
  writer.begin_words(77, inprocess::record_bytes(64));
  while (writer.add_words({1, 1})) {
  }
  writer.finish_words(0);
  BOOST_TEST(writer.has_room(64));
  BOOST_TEST(!writer.has_room(96));
  ring.write(1, stack_of(Ring::kBytes - inprocess::record_bytes(0), 0));
  RingWriter full(ring.thread, ring.bytes.data(), Ring::kBytes);
  full.begin_words(77, 8);
  BOOST_TEST(!full.add_words({1, 1}));
  full.finish_words(0);
  BOOST_TEST(!full.has_room(0));
}

BOOST_AUTO_TEST_CASE(more_words_than_a_record_holds_are_several_records) {
  constexpr std::uint32_t kBytes = 1 << 18;
  inprocess::Thread thread{};
  std::vector<std::byte> bytes(kBytes);
  RingWriter writer(thread, bytes.data(), kBytes);
  writer.begin_words(77, 0);
  constexpr std::uint64_t kCount = 8000;
  for (std::uint64_t i = 0; i < kCount; ++i)
    BOOST_REQUIRE(writer.add_words({i, i}));
  writer.finish_words(0);
  SampleHead head{};
  writer.finish(head, false);
  ByteReader reader(bytes);
  std::uint64_t next = 0;
  for (auto record = stream::take_record(reader); record->type == 77;
       record = stream::take_record(reader))
    for (ByteReader words(record->body()); !words.empty(); ++next)
      BOOST_REQUIRE(words.take<inprocess::ScriptWords>().value()[0] == next);
  BOOST_TEST(next == kCount);
}

BOOST_AUTO_TEST_CASE(frames_of_scripts_come_back_from_their_words) {
  using languages::ScriptFrame;
  for (const ScriptFrame& frame :
       {ScriptFrame{0x7fff'1234'5678, 192, 0x89ab'cdef, false}, ScriptFrame{16, ~0U, ~0U, true},
        ScriptFrame{.ends_call = true}, ScriptFrame{.code = languages::kUnreadableCode}})
    BOOST_CHECK(inprocess::script_frame(inprocess::script_words(frame)) == frame);
  BOOST_TEST(languages::place_of(100, 104) == 4U);
  BOOST_TEST(languages::place_of(100, 0) == ~0U);
}

BOOST_AUTO_TEST_SUITE_END()
