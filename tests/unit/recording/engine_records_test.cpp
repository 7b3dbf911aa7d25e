// SPDX-License-Identifier: MIT
#include "recording/stream/engine_records.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "recording/stream/drain.h"
#include "recording/stream/whole_stream.h"
#include "stream/session.h"
#include "support/memory_input.h"
#include "support/string_output.h"

using pe::recording::CopiedSample;
using pe::recording::EngineRecords;

BOOST_AUTO_TEST_SUITE(engine_records)

namespace {

/// Returns the stream of what `engine` writes.
std::string stream_of(const pe::recording::Request& request,
                      const std::function<void(EngineRecords&)>& engine,
                      std::size_t ring_bytes = 1 << 24) {
  pe::StringOutput out;
  pe::stream::StreamWriter writer(out);
  std::vector<std::string> notes;
  const auto event = pe::recording::engine_event(request, notes);
  pe::Budget budget;
  pe::recording::RecordedStream stream(writer, event.attr, request, budget);
  pe::recording::EngineRing ring(ring_bytes);
  EngineRecords records(ring, event);
  pe::recording::Drain drain(stream, event.attr);
  write_head(stream, {&event, 1}, "ptrace");
  engine(records);
  drain.finish(ring.rings());
  write_tail(stream, event, ring.lost());
  return out.text;
}

std::string stream_of_sample(const pe::recording::Request& request, const CopiedSample& sample) {
  return stream_of(request, [&](EngineRecords& records) { records.sample(sample); });
}

const std::vector<std::byte> kStack(256);

/// Of this process, in a function of ours.
CopiedSample own_sample(std::uint64_t time_ns) {
  CopiedSample sample{.pid = ::getpid(),
                      .tid = ::gettid(),
                      .cpu = 1,
                      .time_ns = time_ns,
                      .period_ns = 2'004'008,
                      .stack = kStack};
  sample.registers[7] = 0x7fff'0000'0000;
  sample.registers[16] = reinterpret_cast<std::uint64_t>(&stream_of_sample);
  return sample;
}

const pe::recording::Request kRequest{.frequency_hz = 499, .may_keep_binaries = false};

}  // namespace

BOOST_AUTO_TEST_CASE(a_sample_has_its_thread_its_time_and_its_program) {
  const std::string text = stream_of(kRequest, [](EngineRecords& records) {
    records.sample(own_sample(1000));
    records.sample(own_sample(2000));
  });
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

// Reads had to rest after each other: the code of new modules was unknown for some samples.
BOOST_AUTO_TEST_CASE(a_starting_program_has_each_of_its_new_mappings_at_once) {
  constexpr std::size_t kMappings = 3, kBytes = 4096;
  std::vector<void*> mapped;
  const std::string text = stream_of(kRequest, [&](EngineRecords& records) {
    records.sample(own_sample(1000));
    for (std::uint64_t i = 0; i < kMappings; ++i) {
      mapped.push_back(
          ::mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      CopiedSample sample = own_sample(2000 + i);
      sample.registers[16] = reinterpret_cast<std::uint64_t>(mapped.back());
      records.sample(sample);
    }
  });
  for (void* const address : mapped)
    ::munmap(address, kBytes);
  auto input = pe::testing::memory_input(text);
  pe::stream::Session session(input);
  std::size_t known = 0;
  while (session.next())
    if (session.sample() && session.sample()->time_ns >= 2000)
      known +=
          session.processes().find(session.sample()->pid, session.sample()->ip) != nullptr ? 1 : 0;
  BOOST_TEST(known == kMappings);
}

BOOST_AUTO_TEST_CASE(a_stack_larger_than_a_record_fits) {
  const std::vector<std::byte> stack(1'000'000);
  CopiedSample deep = own_sample(1000);
  deep.stack = stack;
  for (const bool keeps : {false, true}) {
    pe::recording::Request request = kRequest;
    request.keep_stacks = keeps;
    const std::string text = stream_of_sample(request, deep);
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
  CopiedSample sample = own_sample(1000);
  sample.is_64_bit = false;
  sample.stack = {};
  const std::string text = stream_of_sample(kRequest, sample);
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
  constexpr std::uint32_t kChild = 4194303;
  const std::string text = stream_of(kRequest, [](EngineRecords& records) {
    records.sample(own_sample(1000));
    records.fork({.pid = kChild,
                  .parent_pid = static_cast<std::uint32_t>(::getpid()),
                  .tid = kChild,
                  .parent_tid = static_cast<std::uint32_t>(::gettid())},
                 2000);
    records.exit(kChild, kChild, 3000);
  });
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
  constexpr std::uint32_t kGone = 4194302, kChild = 4194303;
  const auto maps = [](const char* path) {
    return std::string("1000-3000 r-xp 00000000 00:00 0 ") + path +
           "\n3000-4000 rw-p 0 00:00 0\nno map\n";
  };
  const std::string text = stream_of(kRequest, [&](EngineRecords& records) {
    records.exec({.pid = kGone, .time_ns = 1000, .name = "first", .maps = maps("/first")});
    records.fork({.pid = kChild, .parent_pid = kGone, .tid = kChild, .parent_tid = kGone}, 2000);
    records.describe({.pid = kChild, .time_ns = 2000, .name = "second", .maps = maps("/first")});
    records.exec({.pid = kChild, .time_ns = 3000, .name = "third", .maps = maps("/third")});
  });
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
  pe::recording::Request request{.frequency_hz = 50'000, .engine = pe::recording::Engine::kPtrace};
  BOOST_TEST(pe::recording::engine_event(request, notes).attr.sample_freq == 10'000u);
  request.engine = pe::recording::Engine::kSignal;
  BOOST_TEST(pe::recording::engine_event(request, notes).attr.sample_freq == 1'000u);
  BOOST_TEST(notes == (std::vector<std::string>{
                          "50000 Hz is faster than threads can be stopped: sampling at 10000 Hz",
                          "50000 Hz is faster than programs are interrupted: sampling at 1000 Hz"}),
             boost::test_tools::per_element());
}

namespace {

struct Seen {
  std::vector<std::uint64_t> times;  ///< of samples
  std::uint64_t told_lost = 0;       ///< by LOST
  std::uint64_t counted_lost = 0;    ///< by LOST_SAMPLES
};

Seen seen_in(const std::string& text) {
  auto input = pe::testing::memory_input(text);
  pe::stream::Session session(input);
  Seen seen;
  while (const auto record = session.next()) {
    const pe::stream::U64View body(record->body());
    if (record->is_sample())
      seen.times.push_back(session.sample()->time_ns);
    else if (record->type == PERF_RECORD_LOST)
      seen.told_lost += body[1];
    else if (record->type == PERF_RECORD_LOST_SAMPLES)
      seen.counted_lost += body[0];
  }
  BOOST_TEST(session.damage() == "");
  BOOST_TEST(session.counts().out_of_order == 0u);
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_sample_is_written_or_lost_and_counted) {
  const std::vector<std::byte> stack(8000);
  std::uint64_t written = 0;
  const Seen seen = seen_in(stream_of(
      kRequest,
      [&](EngineRecords& records) {
        CopiedSample sample = own_sample(1000);
        sample.stack = stack;
        for (; written < 100; ++written)
          records.sample(sample);
      },
      1 << 18));
  BOOST_TEST(seen.times.size() < 40u);
  BOOST_TEST(seen.times.size() + seen.counted_lost == 100u);
}

BOOST_AUTO_TEST_CASE(a_loss_is_told_as_soon_as_there_is_room) {
  std::vector<std::string> notes;
  const auto event = pe::recording::engine_event(kRequest, notes);
  pe::recording::EngineRing ring(1 << 18);
  EngineRecords records(ring, event);
  const std::vector<std::byte> stack(8000);
  CopiedSample sample = own_sample(1000);
  sample.stack = stack;
  std::uint64_t told = 0, samples = 0, taken = 0;
  const auto read = [&] {
    ring.rings().front().drain([&](const pe::stream::Record& record) {
      samples += record.is_sample() ? 1 : 0;
      told += record.type == PERF_RECORD_LOST ? pe::stream::U64View(record.body())[1] : 0;
    });
  };
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i, ++taken)
      records.sample(sample);
    read();
  }
  records.sample(sample);
  ++taken;
  read();
  BOOST_TEST(told > 0u);
  BOOST_TEST(told == ring.lost());
  BOOST_TEST(samples + told == taken);
}

BOOST_AUTO_TEST_CASE(records_that_come_late_are_sorted_into_the_order_of_time) {
  const Seen seen = seen_in(stream_of(kRequest, [](EngineRecords& records) {
    records.may_go_back_to(0);
    for (const std::uint64_t time_ns : {300, 100, 400, 200})
      records.sample(own_sample(time_ns));
  }));
  BOOST_TEST((seen.times == std::vector<std::uint64_t>{100, 200, 300, 400}));
}

BOOST_AUTO_TEST_CASE(times_that_cannot_be_are_made_the_nearest_that_can) {
  const Seen seen = seen_in(stream_of(kRequest, [](EngineRecords& records) {
    records.may_go_back_to(1000);
    records.sample(own_sample(10));                // before what is complete
    records.sample(own_sample(~std::uint64_t{}));  // not yet
  }));
  BOOST_TEST_REQUIRE(seen.times.size() == 2u);
  BOOST_TEST(seen.times[0] == 1000u);
  BOOST_TEST(seen.times[1] <= pe::monotonic_ns());
}

BOOST_AUTO_TEST_CASE(mappings_are_known_to_older_samples_that_come_later) {
  const std::string text = stream_of(kRequest, [](EngineRecords& records) {
    records.may_go_back_to(100);
    records.sample(own_sample(2000));
    records.sample(own_sample(1000));
  });
  auto input = pe::testing::memory_input(text);
  pe::stream::Session session(input);
  while (session.next())
    if (session.sample())
      BOOST_TEST(session.processes().find(session.sample()->pid, session.sample()->ip) != nullptr);
  BOOST_TEST(session.counts().samples == 2u);
}

BOOST_AUTO_TEST_CASE(mappings_of_another_program_in_the_same_process_are_not_read) {
  const auto mappings_with = [](std::uint64_t own_inode) {
    const std::string text = stream_of(kRequest, [&](EngineRecords& records) {
      records.exec({.pid = ::getpid(),
                    .time_ns = 500,
                    .name = "tested",
                    .maps = "no map\n",
                    .own_inode = own_inode});
      records.sample(own_sample(1000));
    });
    auto input = pe::testing::memory_input(text);
    pe::stream::Session session(input);
    std::uint64_t mappings = 0;
    while (const auto record = session.next())
      mappings += record->type == PERF_RECORD_MMAP2 ? 1 : 0;
    return mappings;
  };
  struct stat own = {};
  BOOST_TEST_REQUIRE(::stat("/proc/self/exe", &own) == 0);
  BOOST_TEST(mappings_with(own.st_ino) > 0u);
  BOOST_TEST(mappings_with(1) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
