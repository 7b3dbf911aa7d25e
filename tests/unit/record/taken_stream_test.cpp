// SPDX-License-Identifier: MIT
#include "record/stream/taken_stream.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "base/io/output.h"
#include "record/stream/whole_stream.h"
#include "stream/session.h"
#include "support/memory_input.h"

using pe::record::TakenSample;
using pe::record::TaskChange;

BOOST_AUTO_TEST_SUITE(taken_stream)

namespace {

/// What is handed over becomes a stream.
std::string stream_of(const pe::record::Request& request, std::vector<TakenSample> samples,
                      const std::vector<TaskChange>& changes = {}) {
  pe::StringOutput out;
  pe::stream::StreamWriter writer(out);
  std::vector<std::string> notes;
  const auto event = pe::record::taken_event(request, notes);
  pe::record::RecordedStream stream(writer, event.attr, request);
  pe::record::TakenQueue queue;
  pe::record::TakenStream taken(stream, event, queue);
  write_head(stream, {&event, 1});
  for (TakenSample& sample : samples)
    queue.push(std::move(sample));
  for (const TaskChange& change : changes)
    queue.push(change);
  taken.pass();
  write_tail(stream, event, queue.lost());
  return out.text;
}

/// Of this process, in a function of ours.
TakenSample own_sample(std::uint64_t time_ns) {
  TakenSample sample{.pid = ::getpid(),
                     .tid = ::gettid(),
                     .cpu = 1,
                     .time_ns = time_ns,
                     .period_ns = 2'004'008,
                     .stack = std::vector<std::byte>(256)};
  sample.registers[7] = 0x7fff'0000'0000;
  sample.registers[16] = reinterpret_cast<std::uint64_t>(&stream_of);
  return sample;
}

const pe::record::Request kRequest{.frequency_hz = 499, .may_keep_binaries = false};

}  // namespace

BOOST_AUTO_TEST_CASE(a_sample_has_its_thread_its_time_and_its_program) {
  const std::string text = stream_of(kRequest, {own_sample(1000), own_sample(2000)});
  auto input = pe::testing::memory_input(text);
  pe::stream::Session session(input);
  std::uint64_t samples = 0;
  while (session.next()) {
    if (!session.sample())
      continue;
    ++samples;
    const auto& sample = *session.sample();
    BOOST_TEST(sample.pid == static_cast<std::uint32_t>(::getpid()));
    BOOST_TEST(sample.tid == static_cast<std::uint32_t>(::gettid()));
    BOOST_TEST(sample.time_ns == samples * 1000);
    BOOST_TEST(sample.period == 2'004'008u);
    BOOST_TEST(sample.cpu == 1u);
    BOOST_TEST(sample.has_callchain);
    BOOST_TEST(session.event()->name == "cpu-clock");
    BOOST_TEST(!session.processes().comm(sample.pid, sample.tid).empty());
    const auto* mapping = session.processes().find(sample.pid, sample.ip);
    BOOST_TEST_REQUIRE(mapping != nullptr);
    BOOST_TEST(mapping->file->path.find(program_invocation_short_name) != std::string::npos);
    BOOST_TEST(!mapping->file->build_id.empty());
  }
  BOOST_TEST(samples == 2u);
  BOOST_TEST(session.damage() == "");
  BOOST_TEST(session.counts().out_of_order == 0u);
}

BOOST_AUTO_TEST_CASE(a_stack_larger_than_a_record_fits) {
  TakenSample deep = own_sample(1000);
  deep.stack.resize(1'000'000);
  for (const bool keeps : {false, true}) {
    pe::record::Request request = kRequest;
    request.keep_stacks = keeps;
    const std::string text = stream_of(request, {deep});
    auto input = pe::testing::memory_input(text);
    pe::stream::Session session(input);
    while (session.next())
      if (session.sample() && keeps)
        BOOST_TEST(session.sample()->has_full_copy());
    BOOST_TEST(session.counts().samples == 1u);
    BOOST_TEST(session.counts().malformed_records == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_program_of_another_word_size_has_one_frame) {
  TakenSample sample = own_sample(1000);
  sample.is_64_bit = false;
  sample.stack.clear();
  const std::string text = stream_of(kRequest, {sample});
  auto input = pe::testing::memory_input(text);
  pe::stream::Session session(input);
  while (session.next()) {
    if (!session.sample())
      continue;
    BOOST_TEST_REQUIRE(session.sample()->callchain.size() == 2u);
    BOOST_TEST(session.sample()->callchain[1] == sample.registers[16]);
  }
  BOOST_TEST(session.counts().samples == 1u);
}

BOOST_AUTO_TEST_CASE(births_and_ends_are_told) {
  constexpr pid_t kChild = 4194303;
  const std::string text = stream_of(
      kRequest, {own_sample(1000)},
      {{.kind = TaskChange::Kind::kBegan,
        .pid = kChild,
        .tid = kChild,
        .parent_pid = ::getpid(),
        .parent_tid = ::gettid(),
        .time_ns = 2000},
       {.kind = TaskChange::Kind::kEnded, .pid = kChild, .tid = kChild, .time_ns = 3000}});
  auto input = pe::testing::memory_input(text);
  pe::stream::Session session(input);
  std::vector<std::uint32_t> seen;
  while (const auto record = session.next()) {
    if (record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT)
      seen.push_back(record->type);
    if (record->type == PERF_RECORD_FORK)
      BOOST_TEST(session.processes().comm(kChild, kChild) ==
                 session.processes().comm(static_cast<std::uint32_t>(::getpid()),
                                          static_cast<std::uint32_t>(::gettid())));
  }
  BOOST_TEST(seen == (std::vector<std::uint32_t>{PERF_RECORD_FORK, PERF_RECORD_EXIT}));
}

BOOST_AUTO_TEST_CASE(what_is_told_of_a_process_does_for_one_that_has_ended) {
  constexpr pid_t kGone = 4194302, kChild = 4194303;
  const auto maps = [](const char* path) {
    return std::string("1000-3000 r-xp 00000000 00:00 0 ") + path +
           "\n3000-4000 rw-p 0 00:00 0\nno map\n";
  };
  const std::string text = stream_of(kRequest, {},
                                     {{.kind = TaskChange::Kind::kExec,
                                       .pid = kGone,
                                       .tid = kGone,
                                       .time_ns = 1000,
                                       .name = "first",
                                       .maps = maps("/first")},
                                      {.kind = TaskChange::Kind::kBegan,
                                       .pid = kChild,
                                       .tid = kChild,
                                       .parent_pid = kGone,
                                       .parent_tid = kGone,
                                       .time_ns = 2000,
                                       .name = "second",
                                       .maps = maps("/first")},
                                      {.kind = TaskChange::Kind::kExec,
                                       .pid = kChild,
                                       .tid = kChild,
                                       .time_ns = 3000,
                                       .name = "third",
                                       .maps = maps("/third")}});
  auto input = pe::testing::memory_input(text);
  pe::stream::Session session(input);
  std::vector<std::string> seen;
  const auto path_of = [&](std::uint32_t pid) -> std::string {
    const auto* mapping = session.processes().find(pid, 0x2000);
    return mapping != nullptr ? mapping->file->path : "none";
  };
  std::uint64_t mappings = 0;
  while (const auto record = session.next()) {
    mappings += record->type == PERF_RECORD_MMAP2 ? 1 : 0;
    if (record->type == PERF_RECORD_COMM)
      seen.push_back(std::string(session.processes().comm(kGone, kGone)) + " " + path_of(kGone) +
                     " " + std::string(session.processes().comm(kChild, kChild)) + " " +
                     path_of(kChild));
  }
  BOOST_TEST(
      seen == (std::vector<std::string>{"first none :4194303 none", "first /first second /first",
                                        "first /first third none"}),
      boost::test_tools::per_element());
  BOOST_TEST(path_of(kChild) == "/third");
  BOOST_TEST(mappings == 2u);
}

BOOST_AUTO_TEST_CASE(a_rate_beyond_what_stops_allow_is_lowered_and_said) {
  std::vector<std::string> notes;
  pe::record::Request request{.frequency_hz = 50'000, .engine = pe::record::Engine::kPtrace};
  BOOST_TEST(pe::record::taken_event(request, notes).attr.sample_freq == 10'000u);
  request.engine = pe::record::Engine::kSignal;
  BOOST_TEST(pe::record::taken_event(request, notes).attr.sample_freq == 1'000u);
  BOOST_TEST(notes == (std::vector<std::string>{
                          "50000 Hz is more than threads can be stopped: sampling at 10000 Hz",
                          "50000 Hz is more than programs are interrupted: sampling at 1000 Hz"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
