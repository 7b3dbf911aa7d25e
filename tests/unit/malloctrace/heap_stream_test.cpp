// SPDX-License-Identifier: MIT
#include "malloctrace/heap_stream.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <tuple>

#include "stream/session.h"
#include "support/costly.h"
#include "support/heap_builder.h"
#include "support/memory_input.h"
#include "support/string_output.h"

namespace {

using namespace pe;
using pe::testing::HeapBuilder;

heap::Heap heap_of(const HeapBuilder& builder) {
  auto checked = heap::SharedFile::check(builder.build());
  return heap::read_heap(std::get<heap::SharedFile>(checked)).value();
}

constexpr std::uint64_t kTimeNs = 5'000'000'000;

std::string stream_of(const HeapBuilder& builder, pid_t pid = 77) {
  StringOutput out;
  malloctrace::HeapStream stream(out);
  const heap::Heap heap = heap_of(builder);
  stream.add({pid, malloctrace::Fate::kEnded, heap}, kTimeNs);
  stream.finish();
  return out.text;
}

/// "alloc-bytes bytes 100 [77 prog] 30@/lib/b 20@/bin/a": the samples as a reader sees them.
std::vector<std::string> samples_of(const std::string& stream) {
  auto input = pe::testing::memory_input(stream);
  stream::Session session(input);
  std::vector<std::string> lines;
  while (session.next()) {
    if (!session.sample())
      continue;
    const stream::Sample& sample = *session.sample();
    std::string line = session.event()->name + " " + session.event()->unit + " " +
                       std::to_string(sample.period) + " [" + std::to_string(sample.pid) + " " +
                       session.processes().comm(sample.pid, sample.tid) + "]";
    for (std::size_t i = 1; i < sample.callchain.size(); ++i) {
      const auto* mapping = session.processes().find(sample.pid, sample.callchain[i]);
      line += " " + std::to_string(sample.callchain[i]) + "@" +
              (mapping != nullptr ? mapping->file->path : "nowhere");
    }
    BOOST_TEST(sample.callchain[0] == static_cast<std::uint64_t>(PERF_CONTEXT_USER));
    lines.push_back(line);
  }
  BOOST_TEST(session.damage() == "");
  BOOST_TEST(session.counts().malformed_records == 0U);
  BOOST_TEST(session.counts().out_of_order == 0U);
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(heap_stream)

BOOST_AUTO_TEST_CASE(each_site_has_a_sample_for_each_event_that_it_took_part_in) {
  HeapBuilder b;
  b.header.peak_bytes = 80;
  const auto a = b.module(0x1000, 0x2000, "/bin/a");
  const auto main = b.code(0x1010, a), f = b.code(0x1020, a);
  b.site_of({main, f}, {.allocated_bytes = 100,
                        .allocated_count = 10,
                        .temporary_count = 3,
                        .live_bytes = 40,
                        .live_count = 2,
                        .peak_bytes = 80});
  b.site_of({main}, {.allocated_bytes = 7, .allocated_count = 1});
  // The innermost address is an instruction's own.
  const std::string inner = " [77 prog] 4127@/bin/a 4112@/bin/a";
  BOOST_TEST(samples_of(stream_of(b)) ==
                 (std::vector<std::string>{
                     "alloc-bytes bytes 100" + inner, "alloc-count allocations 10" + inner,
                     "live-bytes bytes 40" + inner, "peak-bytes bytes 80" + inner,
                     "temporary allocations 3" + inner, "alloc-bytes bytes 7 [77 prog] 4111@/bin/a",
                     "alloc-count allocations 1 [77 prog] 4111@/bin/a"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_address_that_two_modules_had_is_named_by_the_right_one) {
  HeapBuilder b;
  const auto main = b.module(0x1000, 0x2000, "/bin/a");
  const auto first = b.module(0x5000, 0x6000, "/lib/first.so");
  const auto second = b.module(0x5000, 0x7000, "/lib/second.so");
  const auto start = b.code(0x1010, main);
  // Met in another order than the modules.
  b.site_of({start, b.code(0x5010, second)}, {.allocated_bytes = 2});
  b.site_of({start, b.code(0x5010, first)}, {.allocated_bytes = 1});
  b.site_of({start}, {.allocated_bytes = 3});
  BOOST_TEST(samples_of(stream_of(b)) ==
                 (std::vector<std::string>{
                     "alloc-bytes bytes 3 [77 prog] 4111@/bin/a",
                     "alloc-bytes bytes 1 [77 prog] 20495@/lib/first.so 4112@/bin/a",
                     "alloc-bytes bytes 2 [77 prog] 20495@/lib/second.so 4112@/bin/a"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_module_that_has_come_back_is_told_again) {
  HeapBuilder b;
  const auto first = b.module(0x5000, 0x6000, "/lib/first.so");
  const auto second = b.module(0x5000, 0x7000, "/lib/second.so");
  const auto later = b.module(0x8000, 0x9000, "/lib/later.so");
  b.site_of({b.code(0x5010, first)}, {.allocated_bytes = 1});
  b.site_of({b.code(0x5010, second)}, {.allocated_bytes = 2});
  b.site_of({b.code(0x5020, first), b.code(0x8010, later)}, {.allocated_bytes = 3});
  BOOST_TEST(samples_of(stream_of(b)) ==
                 (std::vector<std::string>{
                     "alloc-bytes bytes 1 [77 prog] 20495@/lib/first.so",
                     "alloc-bytes bytes 2 [77 prog] 20495@/lib/second.so",
                     "alloc-bytes bytes 3 [77 prog] 32783@/lib/later.so 20512@/lib/first.so"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(code_made_at_run_time_is_in_anonymous_memory) {
  HeapBuilder b;
  const auto made = b.module(0x9000, 0xa000, "", 0);
  b.site_of({b.code(0x9010, made)}, {.allocated_bytes = 1});
  b.site_of({b.code(0x7fff, 0), b.code(0x8001, 0)}, {.allocated_bytes = 2});
  b.site(0, {.allocated_bytes = 3});
  BOOST_TEST(
      samples_of(stream_of(b)) == (std::vector<std::string>{
                                      "alloc-bytes bytes 2 [77 prog] 32768@//anon 32767@//anon",
                                      "alloc-bytes bytes 3 [77 prog]",
                                      "alloc-bytes bytes 1 [77 prog] 36879@//anon",
                                  }),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(addresses_of_signal_frames_are_what_a_return_address_would_be) {
  HeapBuilder b;
  const auto a = b.module(0x1000, 0x2000, "/bin/a");
  b.site_of({b.code(0x1010, a, true), b.code(0x1020, a, true)}, {.allocated_bytes = 1});
  BOOST_TEST(samples_of(stream_of(b)).at(0) ==
             "alloc-bytes bytes 1 [77 prog] 4128@/bin/a 4113@/bin/a");
}

BOOST_AUTO_TEST_CASE(a_second_program_of_a_process_has_a_name_and_code_of_its_own) {
  HeapBuilder shell, program;
  shell.set_command("sh");
  shell.site_of({shell.code(0x1010, shell.module(0x1000, 0x2000, "/bin/sh"))},
                {.allocated_bytes = 1});
  program.set_command("make");
  program.site_of({program.code(0x1810, program.module(0x1800, 0x2000, "/bin/make"))},
                  {.allocated_bytes = 2});
  program.site_of({program.code(0x1010, 0)}, {.allocated_bytes = 3});
  StringOutput out;
  malloctrace::HeapStream stream(out);
  const heap::Heap first = heap_of(shell), second = heap_of(program);
  stream.add({5, malloctrace::Fate::kBeganAnother, first}, kTimeNs);
  stream.add({5, malloctrace::Fate::kRuns, second}, kTimeNs);
  stream.finish();
  BOOST_TEST(samples_of(out.text) == (std::vector<std::string>{
                                         "alloc-bytes bytes 1 [5 sh] 4111@/bin/sh",
                                         "alloc-bytes bytes 3 [5 make] 4111@//anon",
                                         "alloc-bytes bytes 2 [5 make] 6159@/bin/make",
                                     }),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(stacks_beyond_a_record_are_cut_and_counted) {
  HeapBuilder b;
  const auto inner = b.code(0x1010);
  b.site_of(std::vector<std::uint32_t>(heap::Heap::kMaxFrames + 5, inner), {.allocated_bytes = 1});
  StringOutput out;
  malloctrace::HeapStream stream(out);
  const heap::Heap heap = heap_of(b);
  stream.add({5, malloctrace::Fate::kEnded, heap}, kTimeNs);
  stream.finish();
  BOOST_TEST(stream.cut_stacks() == 1U);
  BOOST_TEST(samples_of(out.text).size() == 1U);
}

/// The times of all kernel records of the stream, each once, in order.
std::vector<std::uint64_t> times_of(const std::string& stream) {
  auto input = pe::testing::memory_input(stream);
  stream::Session session(input);
  std::vector<std::uint64_t> times;
  while (const auto record = session.next()) {
    if (record->type >= stream::kRecordFirstOfPerf)
      continue;
    const perf_event_attr& attr = session.events().all().front().attr;
    BOOST_TEST((attr.use_clockid == 1 && attr.clockid == CLOCK_MONOTONIC));
    const std::uint64_t time_ns = stream::time_of(*record, attr);
    if (times.empty() || times.back() != time_ns)
      times.push_back(time_ns);
  }
  BOOST_TEST(session.damage() == "");
  BOOST_TEST(session.counts().out_of_order == 0U);
  return times;
}

BOOST_AUTO_TEST_CASE(all_records_of_a_process_have_the_time_of_its_reading) {
  HeapBuilder b;
  b.site_of({b.code(0x1010, b.module(0x1000, 0x2000, "/bin/a"))}, {.allocated_bytes = 1});
  BOOST_TEST(times_of(stream_of(b)) == std::vector{kTimeNs}, boost::test_tools::per_element());
  StringOutput out;
  malloctrace::HeapStream stream(out);
  const heap::Heap heap = heap_of(b);
  for (const std::uint64_t time_ns : {kTimeNs, kTimeNs + 7, kTimeNs + 3, kTimeNs + 9})
    stream.add({5, malloctrace::Fate::kEnded, heap}, time_ns);
  stream.finish();
  BOOST_TEST(times_of(out.text) == (std::vector{kTimeNs, kTimeNs + 7, kTimeNs + 9}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rounds_bound_what_a_reader_holds, *pe::tests::costly()) {
  HeapBuilder b;
  const auto inner = b.code(0x1010);
  constexpr std::size_t kSites = 50;
  for (std::size_t i = 1; i <= kSites; ++i)
    b.site_of(std::vector<std::uint32_t>(heap::Heap::kMaxFrames - i, inner),
              {.allocated_bytes = i});
  auto input = pe::testing::memory_input(stream_of(b));
  stream::StreamReader reader(input);
  std::size_t bytes = 0, most = 0, rounds = 0;
  while (const auto record = reader.next()) {
    const bool is_round = record->type == stream::kRecordFinishedRound;
    rounds += is_round ? 1 : 0;
    bytes = is_round ? 0 : bytes + record->bytes.size();
    most = std::max(most, bytes);
  }
  BOOST_TEST(rounds > 2U);
  BOOST_TEST(most < (1U << 20U) + (1U << 16U));
}

BOOST_AUTO_TEST_CASE(estimates_are_whole_numbers) {
  HeapBuilder b;
  b.header.sample_bytes = 1024;
  b.site_of({b.code(0x1010)},
            {.allocated_bytes = 1, .allocated_count = 640, .temporary_count = 256});
  const auto samples = samples_of(stream_of(b));
  BOOST_REQUIRE(samples.size() == 3U);
  BOOST_TEST(samples[1].starts_with("alloc-count allocations 3 "));
  BOOST_TEST(samples[2].starts_with("temporary allocations 1 "));
}

BOOST_AUTO_TEST_SUITE_END()
