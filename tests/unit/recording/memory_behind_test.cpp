// SPDX-License-Identifier: MIT
#include "recording/stream/synthesize.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "stream/build_records.h"
#include "stream/stream_writer.h"
#include "stream/user_copy.h"

using namespace pe;
using recording::KeptBehind;
using recording::MemoryBehind;

BOOST_AUTO_TEST_SUITE(memory_behind)

namespace {

perf_event_attr copied_attr() {
  perf_event_attr attr{};
  attr.sample_type =
      PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = stream::wanted_user_regs();
  return attr;
}

/// A stack of this process, in memory that a test may change, and a sample that has copied the
/// first part of it.
struct StandingStack {
  explicit StandingStack(std::size_t copied_bytes) : memory(8192) {
    std::iota(memory.begin(), memory.end(), std::uint8_t{0});
    std::vector<std::uint64_t> registers(17);
    constexpr std::size_t kStackPointer = 7;
    registers[kStackPointer] = start();
    stream::RecordBuilder builder;
    builder.begin(PERF_RECORD_SAMPLE)
        .add(static_cast<std::uint32_t>(::getpid()))
        .add(static_cast<std::uint32_t>(::gettid()))
        .add(std::uint64_t{1});
    stream::add_user_regs(builder, PERF_SAMPLE_REGS_ABI_64, attr.sample_regs_user, registers);
    builder.add(std::uint64_t{copied_bytes})
        .add_bytes({reinterpret_cast<const char*>(memory.data()), copied_bytes})
        .add(std::uint64_t{copied_bytes});
    record = builder.finish();
    sample =
        stream::parse_sample(stream::view_record(std::as_bytes(std::span(record))), attr).value();
  }
  [[nodiscard]] std::uint64_t start() const {
    return reinterpret_cast<std::uint64_t>(memory.data());
  }
  /// The result holds to the next call.
  unwind::Behind read() {
    stream::History history;
    unwind::SampleUnwinder unwinder(history, {.stack_at = [this](std::uint32_t, std::uint64_t) {
                                      return unwind::MemoryRange{start(), start() + memory.size()};
                                    }});
    return behind.read(sample, attr, unwinder);
  }

  perf_event_attr attr = copied_attr();
  std::vector<std::uint8_t> memory;
  std::string record;
  stream::Sample sample;
  Budget budget;
  MemoryBehind behind{budget};
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_follows_a_copy_is_read_from_the_process) {
  StandingStack stack(1024);
  const auto behind = stack.read();
  BOOST_TEST(behind.agreed_bytes == 1024u);
  const Bytes wanted = std::as_bytes(std::span(stack.memory)).subspan(1024);
  BOOST_TEST((std::vector(behind.bytes.begin(), behind.bytes.end()) ==
              std::vector(wanted.begin(), wanted.end())));
}

BOOST_AUTO_TEST_CASE(how_much_still_stands_is_counted_from_the_end_of_the_copy) {
  StandingStack stack(1024);
  stack.memory[1024 - 301] ^= 1;
  stack.memory[2] ^= 1;
  BOOST_TEST(stack.read().agreed_bytes == 300u);
  stack.memory[1024 - 257] ^= 1;
  const auto behind = stack.read();
  BOOST_TEST(behind.agreed_bytes == 256u);
  BOOST_TEST(behind.bytes.size() == 8192 - 1024u);
}

BOOST_AUTO_TEST_CASE(a_copy_whose_end_has_changed_is_not_continued) {
  StandingStack stack(1024);
  stack.memory[1024 - 8] ^= 1;
  BOOST_TEST(stack.read().bytes.empty());
}

BOOST_AUTO_TEST_CASE(a_short_copy_is_continued) {
  StandingStack stack(64);
  const auto behind = stack.read();
  BOOST_TEST(behind.agreed_bytes == 64u);
  BOOST_TEST(behind.bytes.size() == 8192 - 64u);
}

BOOST_AUTO_TEST_CASE(a_copy_that_is_empty_or_reaches_the_end_is_not_continued) {
  BOOST_TEST(StandingStack(0).read().bytes.empty());
  BOOST_TEST(StandingStack(8192).read().bytes.empty());
}

BOOST_AUTO_TEST_CASE(after_the_end_little_is_read) {
  StandingStack stack(1024);
  constexpr int kUsual = 3000;  // 21 MB
  for (int i = 0; i < kUsual; ++i)
    BOOST_TEST_REQUIRE(!stack.read().bytes.empty());
  stack.budget.end(250'000'000);
  int read = 0;
  while (read < kUsual && !stack.read().bytes.empty())
    ++read;
  BOOST_TEST(read >= 1000);
  BOOST_TEST(read < 1200);
}

BOOST_AUTO_TEST_CASE(of_a_process_that_is_gone_there_is_none) {
  StandingStack stack(1024);
  stack.sample.pid = (1U << 30) + 1;  // Linux gives at most 2^22
  BOOST_TEST(stack.read().bytes.empty());
}

namespace {

/// Makes records of the memory, and reads them into `kept`.  Returns how many there are.
std::size_t kept_of(const unwind::Behind& behind, KeptBehind& kept) {
  std::size_t records = 0;
  recording::make_behind_records(behind, 10, [&](auto pieces) {
    std::vector<std::byte> bytes;
    for (const Bytes piece : pieces)
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    const auto record = stream::view_record(bytes);
    perf_event_header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    BOOST_TEST(header.size == bytes.size());
    BOOST_TEST(recording::time_of_behind(record).value_or(0) == 10u);
    BOOST_TEST_REQUIRE(kept.take(record));
    ++records;
  });
  return records;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_held_for_a_sample_comes_back_with_it) {
  for (const std::size_t size : {24U, 200'000U}) {
    std::vector<std::byte> bytes(size, std::byte{0x5a});
    bytes.back() = std::byte{1};
    KeptBehind kept;
    BOOST_TEST(kept_of({bytes, 777}, kept) == (size < 65'000 ? 1u : 4u));
    BOOST_TEST(kept.view().agreed_bytes == 777u);
    BOOST_TEST((std::vector(kept.view().bytes.begin(), kept.view().bytes.end()) == bytes));
    BOOST_TEST(kept_of({{}, 777}, kept) == 1u);
    BOOST_TEST(kept.view().bytes.empty());
  }
}

BOOST_AUTO_TEST_CASE(what_was_held_can_be_forgotten) {
  const std::vector<std::byte> bytes(24);
  KeptBehind kept;
  kept_of({bytes, 777}, kept);
  kept.forget();
  BOOST_TEST(kept.view().bytes.empty());
}

BOOST_AUTO_TEST_CASE(records_of_the_kernel_are_not_taken_for_it) {
  StandingStack stack(1024);
  KeptBehind kept;
  BOOST_TEST(
      !recording::time_of_behind(stream::view_record(std::as_bytes(std::span(stack.record)))));
  BOOST_TEST(!kept.take(stream::view_record(std::as_bytes(std::span(stack.record)))));
  BOOST_TEST(kept.view().bytes.empty());
}

BOOST_AUTO_TEST_SUITE_END()
