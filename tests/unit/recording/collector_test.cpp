// SPDX-License-Identifier: MIT
#include "recording/signal/collector.h"

#include <sys/wait.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "recording/inprocess/runtime/shared_file.h"
#include "stream/history.h"
#include "support/sample_record.h"
#include "support/shared_samples.h"

namespace {

using namespace pe;
using pe::testing::SharedSamples;

/// The pid and tid in records of a process, of which nobody takes notice.
constexpr std::uint32_t kWrittenId = 1;

/// A collector, and the records that it has written, in words.
class Collecting {
 public:
  explicit Collecting(recording::ThreadChoice choice = {})
      : collector_(records_, std::move(choice), SharedSamples::kHz) {}

  recording::Collector& operator*() noexcept { return collector_; }
  recording::Collector* operator->() noexcept { return &collector_; }

  /// The lines since the start.  They leave out mappings, and the names that programs give
  /// themselves.
  const std::vector<std::string>& lines() {
    ring_.rings().front().drain([this](const stream::Record& record) { add(record); });
    return lines_;
  }
  /// What a reader knows of processes after those lines.
  [[nodiscard]] const stream::ProcessTable& processes() const noexcept {
    return history_.processes();
  }

 private:
  static std::string name_of(std::uint32_t tid) {
    return tid == static_cast<std::uint32_t>(::getpid()) ? "first" : std::to_string(tid);
  }

  void add(const stream::Record& record) {
    history_.apply(record);
    ByteReader reader(record.body());
    const auto pid = reader.take<std::uint32_t>(), second = reader.take<std::uint32_t>();
    BOOST_REQUIRE(second.has_value());
    if (record.is_sample()) {
      const auto sample = stream::parse_sample(record, event_.attr);
      BOOST_REQUIRE(sample.has_value());
      BOOST_TEST(sample->pid != kWrittenId);
      lines_.push_back("sample " + name_of(sample->tid) + " " + std::to_string(sample->period) +
                       " " + std::to_string(sample->user_stack.size()) +
                       (sample->has_full_copy() ? " cut" : ""));
    } else if (record.type == PERF_RECORD_COMM && record.misc == PERF_RECORD_MISC_COMM_EXEC) {
      lines_.push_back("program " + std::string(history_.processes().comm(*pid, *second)));
    } else if (record.type == PERF_RECORD_FORK || record.type == PERF_RECORD_EXIT) {
      const std::uint32_t tid = reader.take<std::uint32_t>().value_or(0);
      lines_.push_back((*pid == tid ? "process" : "thread " + name_of(tid)) +
                       (record.type == PERF_RECORD_EXIT ? " ends" : ""));
    }
  }

  std::vector<std::string> notes_;
  recording::OpenedEvent event_ =
      recording::engine_event({.frequency_hz = SharedSamples::kHz}, notes_);
  recording::EngineRing ring_{std::size_t{1} << 22};
  recording::EngineRecords records_{ring_, event_};
  recording::Collector collector_;
  stream::History history_;
  std::vector<std::string> lines_;
};

inprocess::Thread live_thread(std::uint32_t tid) {
  inprocess::Thread thread{};
  thread.state = inprocess::kLive;
  thread.tid = tid;
  return thread;
}

constexpr std::uint64_t kPeriodNs = kNsPerSecond / SharedSamples::kHz;

/// A record as a process writes it.
std::vector<std::byte> written(std::uint64_t weight, std::size_t stack_bytes, bool is_cut = false) {
  inprocess::SampleHead head{};
  head.pid = head.tid = kWrittenId;
  head.period_ns = weight * kPeriodNs;
  return testing::sample_record(head, stack_bytes, is_cut);
}

/// Higher than any of this machine (pid_max).
constexpr std::uint32_t kNobody = 0x7ffffff0;

/// The collector sees a process with one thread, and its ring.
void send(SharedSamples& samples, inprocess::Thread thread, Bytes ring, Collecting& collector) {
  samples.header.threads = 1;
  thread.head = ring.size();
  samples.put_ring(0, ring);
  samples.put_thread(0, thread);
  samples.send_to(collector->listener());
  collector->pass();
}

/// The collector sees a process with one thread, which has ended.
void send_ended(SharedSamples& samples, std::uint32_t tid, std::string_view name,
                Collecting& collector) {
  inprocess::Thread thread = live_thread(tid);
  thread.state = inprocess::kEnded;
  name.copy(thread.name, sizeof thread.name - 1);
  send(samples, thread, {}, collector);
}

std::string refusal_of(SharedSamples& samples, int seals = F_SEAL_SHRINK) {
  const auto checked = inprocess::SharedMemory::check(samples.build(seals));
  const auto* why = std::get_if<std::string>(&checked);
  return why != nullptr ? *why : "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sampler_collector)

BOOST_AUTO_TEST_CASE(only_sealed_memory_of_the_right_size_and_version_is_taken) {
  SharedSamples good;
  BOOST_TEST(refusal_of(good) == "");
  SharedSamples open;
  BOOST_TEST(refusal_of(open, 0) == "shared memory that is not sealed against shrinking");
  SharedSamples other;
  other.header.magic += 1;
  BOOST_TEST(refusal_of(other) == "shared memory of another version");
  SharedSamples small;
  small.resize(inprocess::kRingsAt);
  BOOST_TEST(refusal_of(small) == "shared memory of the wrong size");
  SharedSamples odd;
  odd.header.ring_bytes = SharedSamples::kRingBytes + 8;
  BOOST_TEST(refusal_of(odd) == "shared memory of the wrong size");
  SharedSamples slow;
  slow.header.hz = 0;
  BOOST_TEST(refusal_of(slow) == "shared memory of the wrong size");
  const auto file = inprocess::SharedMemory::check(Fd(::open("/proc/self/exe", O_RDONLY)));
  BOOST_TEST((std::get_if<std::string>(&file) != nullptr));
}

BOOST_AUTO_TEST_CASE(what_a_process_has_written_comes_out_once_and_frees_its_ring) {
  Collecting collector;
  SharedSamples samples;
  const std::string maps = "1000-2000 r-xp 0 00:00 0 /mapped\n";
  samples.header.maps_bytes = static_cast<std::uint32_t>(maps.size());
  samples.put(inprocess::kMapsAt, std::as_bytes(std::span(maps)));
  inprocess::Thread thread = live_thread(samples.header.pid);
  auto bytes = written(1, 16);
  const auto second = written(4, 8, true);
  bytes.insert(bytes.end(), second.begin(), second.end());
  thread.lost_samples = 2;
  thread.lost_weight = 7;
  send(samples, thread, bytes, collector);
  collector->pass();
  BOOST_TEST(collector.lines() ==
                 (std::vector<std::string>{"process", "program tested", "sample first 10000000 16",
                                           "sample first 40000000 8 cut"}),
             boost::test_tools::per_element());
  const auto* mapping = collector.processes().find(samples.header.pid, 0x1000);
  BOOST_TEST_REQUIRE(mapping != nullptr);
  BOOST_TEST(mapping->file->path == "/mapped");
  BOOST_TEST(samples.thread(0).tail == bytes.size());
  BOOST_TEST(collector->counts().weight == 5U);
  BOOST_TEST(collector->counts().lost_samples == 2U);
  BOOST_TEST(collector->counts().lost_weight == 7U);
  BOOST_TEST(collector->counts().damaged == 0U);
}

BOOST_AUTO_TEST_CASE(a_slot_is_free_again_once_the_last_samples_of_its_thread_are_taken) {
  Collecting collector;
  SharedSamples samples;
  samples.header.threads = 2;
  inprocess::Thread thread = live_thread(kNobody);
  thread.state = inprocess::kEnded;
  const auto bytes = written(1, 0);
  thread.head = bytes.size();
  samples.put_ring(1, bytes);
  samples.put_thread(1, thread);
  samples.send_to(collector->listener());
  collector->pass();
  BOOST_TEST(samples.thread(1).state == inprocess::kFree);
  BOOST_TEST(collector.lines().back() == "thread " + std::to_string(kNobody) + " ends");
  // Another takes it, and goes on where the first has ended.
  inprocess::Thread next = samples.thread(1);
  next.state = inprocess::kLive;
  next.tid = kNobody - 1;
  samples.put_thread(1, next);
  collector->pass();
  BOOST_TEST(collector.lines().back() == "thread " + std::to_string(kNobody - 1));
  BOOST_TEST(collector->counts().threads == 2U);
}

BOOST_AUTO_TEST_CASE(unwanted_threads_are_told_so_and_give_no_samples) {
  Collecting collector({.names = {"nobody-has-this"}, .tids = {}});
  SharedSamples samples;
  const auto bytes = written(1, 0);
  send(samples, live_thread(samples.header.pid), bytes, collector);
  BOOST_TEST(collector->counts().samples == 0U);
  BOOST_TEST(samples.thread(0).is_unwanted == 1U);
  BOOST_TEST(collector->threads().missed().names.contains("nobody-has-this"));
  BOOST_TEST(collector->threads().seen_names().size() == 1U);
  BOOST_TEST(samples.thread(0).tail == bytes.size());
}

BOOST_AUTO_TEST_CASE(hostile_numbers_are_counted_and_nothing_else_happens) {
  Collecting collector;
  SharedSamples samples;
  samples.header.threads = 0xffffffff;
  samples.header.maps_bytes = 0xffffffff;
  std::memset(samples.header.command, 'x', sizeof samples.header.command);
  inprocess::Thread beyond = live_thread(kNobody);
  beyond.head = ~std::uint64_t{0};
  samples.put_thread(0, beyond);
  inprocess::Thread nonsense = live_thread(kNobody - 1);
  nonsense.head = 1000;
  std::memset(nonsense.name, 'y', sizeof nonsense.name);
  samples.put_thread(1, nonsense);
  inprocess::Thread strange = live_thread(kNobody - 2);
  strange.state = 77;
  strange.head = 8;
  samples.put_thread(2, strange);
  samples.send_to(collector->listener());
  collector->pass();
  BOOST_TEST(collector->counts().samples == 0U);
  BOOST_TEST(collector->counts().damaged == 2U);
  BOOST_TEST(collector->counts().threads == 2U);
  // What comes after is read again.
  inprocess::Thread good = samples.thread(1);
  const auto bytes = written(1, 0);
  samples.put(inprocess::kRingsAt + SharedSamples::kRingBytes + 1000, bytes);
  good.head = 1000 + bytes.size();
  samples.put_thread(1, good);
  collector->pass();
  BOOST_TEST(collector->counts().samples == 1U);
}

/// Collects the samples of a ring with these bytes, of a process with one thread.
void collect(Bytes bytes, Collecting& collector) {
  SharedSamples samples;
  send(samples, live_thread(samples.header.pid), bytes, collector);
}

std::uint64_t damage_of(Bytes bytes) {
  Collecting collector;
  collect(bytes, collector);
  return collector->counts().damaged;
}

BOOST_AUTO_TEST_CASE(records_that_contradict_themselves_end_the_reading_of_a_ring) {
  const std::vector<std::byte> one = written(1, 64);
  std::vector<std::byte> good(one);
  good.insert(good.end(), one.begin(), one.end());
  const auto read = [&](std::size_t at, std::uint64_t value, std::size_t size) {
    std::vector<std::byte> bytes(good);
    std::memcpy(bytes.data() + one.size() + at, &value, size);
    Collecting collector;
    collect(bytes, collector);
    const recording::CollectorCounts& counts = collector->counts();
    BOOST_TEST(counts.damaged + counts.samples == 2U);
    BOOST_TEST(collector.lines().size() == 2 + counts.samples);  // process, program
    return counts.samples;
  };
  using inprocess::SampleHead;
  constexpr std::size_t kSize = offsetof(perf_event_header, size), kRoom = sizeof(SampleHead) - 8;
  BOOST_TEST(read(kSize, one.size(), 2) == 2U);  // as it is
  for (const std::uint64_t size : {0UL, 1UL, 7UL, 8UL, one.size() - 8, one.size() + 1, 0xffffUL})
    BOOST_TEST(read(kSize, size, 2) == 1U);
  for (const std::uint64_t room : {~0UL, ~0UL - 200, 1UL << 63, one.size(), 8UL * 7})
    BOOST_TEST(read(kRoom, room, 8) == 1U);
  BOOST_TEST(read(one.size() - 8, 64 + 8 + 1, 8) == 1U);  // more copied bytes than room
  BOOST_TEST(read(offsetof(SampleHead, abi), PERF_SAMPLE_REGS_ABI_NONE, 8) == 1U);
  BOOST_TEST(read(offsetof(SampleHead, abi), PERF_SAMPLE_REGS_ABI_32, 8) == 1U);
  BOOST_TEST(read(0, PERF_RECORD_COMM, 4) == 1U);
  BOOST_TEST(damage_of(Bytes(good).first(100)) == 1U);
}

/// A record of `room` bytes for the stack, all of them copied.
std::vector<std::byte> record_of_room(std::uint64_t room) {
  inprocess::SampleHead head{};
  head.header = {PERF_RECORD_SAMPLE, 0, static_cast<std::uint16_t>(sizeof head + room + 8)};
  head.abi = PERF_SAMPLE_REGS_ABI_64;
  head.stack_room = room;
  std::vector<std::byte> bytes(sizeof head + room + 8);
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head + room, &room, sizeof room);
  return bytes;
}

BOOST_AUTO_TEST_CASE(a_record_of_a_size_that_no_handler_writes_is_damaged) {
  BOOST_TEST(damage_of(record_of_room(16)) == 0U);
  BOOST_TEST(damage_of(record_of_room(12)) == 1U);  // the next record would not be aligned
  BOOST_TEST(damage_of(record_of_room(inprocess::kMostCopiedBytes + 8)) == 0U);
  BOOST_TEST(damage_of(record_of_room(inprocess::kMostCopiedBytes + 16)) == 1U);
}

BOOST_AUTO_TEST_CASE(an_impossible_period_becomes_the_nearest_possible_one) {
  for (const auto& [told, read] :
       {std::pair{0UL, kPeriodNs}, {kPeriodNs - 1, kPeriodNs}, {~0UL, 0xffffffff * kPeriodNs}}) {
    inprocess::SampleHead head{};
    head.period_ns = told;
    Collecting collector;
    collect(testing::sample_record(head, 0), collector);
    BOOST_TEST(collector->counts().damaged == 0U);
    BOOST_TEST(collector.lines().back() == "sample first " + std::to_string(read) + " 0");
  }
}

BOOST_AUTO_TEST_CASE(a_sample_of_the_process_timer_represents_at_least_a_tick) {
  Collecting collector;
  SharedSamples samples;
  samples.header.hz = inprocess::kMostHz;
  samples.header.timer_kind = static_cast<std::uint32_t>(inprocess::TimerKind::kProcess);
  send(samples, live_thread(samples.header.pid), testing::sample_record({}, 0), collector);
  const std::uint64_t period_ns = kNsPerSecond / inprocess::kMostHz;
  BOOST_TEST(collector.lines().back() ==
             "sample first " + std::to_string(std::max(period_ns, inprocess::tick_ns())) + " 0");
  BOOST_TEST(collector->counts().weight == 1U);
}

BOOST_AUTO_TEST_CASE(what_a_process_has_left_is_taken_when_it_has_ended) {
  Collecting collector;
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    SharedSamples samples;
    samples.header.threads = 1;
    inprocess::Thread thread = live_thread(kNobody);
    const auto bytes = written(3, 8);
    thread.head = bytes.size();
    samples.put_ring(0, bytes);
    samples.put_thread(0, thread);
    samples.send_to(collector->listener());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  collector->pass();
  const std::string tid = std::to_string(kNobody);
  BOOST_TEST(
      collector.lines() == (std::vector<std::string>{"process", "program tested", "thread " + tid,
                                                     "sample " + tid + " 30000000 8",
                                                     "thread " + tid + " ends", "process ends"}),
      boost::test_tools::per_element());
  BOOST_TEST(collector->running() == 0U);
}

BOOST_AUTO_TEST_CASE(a_chosen_thread_that_was_there_is_not_missed) {
  Collecting collector({.names = {}, .tids = {::getpid(), kNobody}});
  SharedSamples samples;
  send(samples, live_thread(samples.header.pid), {}, collector);
  BOOST_TEST(collector->threads().missed().tids == std::set<pid_t>{kNobody});
}

BOOST_AUTO_TEST_CASE(programs_that_a_process_begins_without_the_library_are_counted) {
  Collecting collector;
  SharedSamples samples;
  samples.header.left_out = 2;
  samples.send_to(collector->listener());
  collector->pass();
  collector->pass();
  BOOST_TEST(collector->counts().left_out == 2U);
}

BOOST_AUTO_TEST_CASE(which_timers_a_process_has_may_turn_out_later) {
  Collecting collector;
  SharedSamples samples;
  samples.send_to(collector->listener());
  collector->pass();
  BOOST_TEST(collector->counts().by_process_timer == 0U);
  samples.header.timer_kind = static_cast<std::uint32_t>(inprocess::TimerKind::kProcess);
  samples.put(0, std::as_bytes(std::span(&samples.header, 1)));
  collector->pass();
  collector->pass();
  BOOST_TEST(collector->counts().by_process_timer == 1U);
}

BOOST_AUTO_TEST_CASE(a_process_that_begins_another_program_goes_on) {
  Collecting collector;
  SharedSamples first;
  first.send_to(collector->listener());
  collector->pass();
  SharedSamples second;
  second.send_to(collector->listener());
  collector->pass();
  BOOST_TEST(collector.lines() ==
                 (std::vector<std::string>{"process", "program tested", "program tested"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_a_process_sends_late_comes_before_what_it_sends_as_another_program) {
  Collecting collector;
  // Connected and interrupted: the collector has come meanwhile.
  const inprocess::Link link(collector->listener().socket_name());
  BOOST_REQUIRE(bool{link});
  collector->pass();
  SharedSamples late, next;
  std::strcpy(late.header.command, "late");
  std::strcpy(next.header.command, "next");
  const Fd memory = late.build();
  BOOST_REQUIRE(link.send_file(memory.get(), collector->listener().key()));
  next.send_to(collector->listener());
  collector->pass();
  BOOST_TEST(
      collector.lines() == (std::vector<std::string>{"process", "program late", "program next"}),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(threads_that_the_process_has_not_found_are_told_to_it) {
  Collecting collector;
  SharedSamples samples;
  samples.send_to(collector->listener());
  collector->pass();
  BOOST_TEST(samples.header_now().wanted_tids[0] == samples.header.pid);
}

BOOST_AUTO_TEST_CASE(a_thread_that_has_just_ended_is_not_asked_for) {
  Collecting collector;
  SharedSamples samples;
  send_ended(samples, samples.header.pid, "t", collector);  // it is in /proc still
  BOOST_TEST(samples.thread(0).state == inprocess::kFree);
  BOOST_TEST(samples.header_now().wanted_tids[0] == 0U);
}

BOOST_AUTO_TEST_CASE(a_thread_that_was_asked_for_too_late_is_none) {
  Collecting collector;
  SharedSamples samples;
  send_ended(samples, kNobody, "", collector);
  BOOST_TEST(collector->counts().threads == 0U);
  BOOST_TEST(collector.lines().size() == 2U);  // the process and its program
  BOOST_TEST(samples.thread(0).state == inprocess::kFree);
}

BOOST_AUTO_TEST_CASE(a_thread_that_ended_without_telling_gives_its_slot_back) {
  Collecting collector;
  SharedSamples samples;
  send(samples, live_thread(kNobody), {}, collector);
  collector->pass();
  BOOST_TEST(collector.lines().back() == "thread " + std::to_string(kNobody) + " ends");
  BOOST_TEST(samples.thread(0).state == inprocess::kFree);
}

BOOST_AUTO_TEST_CASE(a_record_that_goes_on_at_the_beginning_of_the_ring_is_whole) {
  Collecting collector;
  SharedSamples samples;
  samples.header.threads = 1;
  inprocess::Thread thread = live_thread(samples.header.pid);
  constexpr std::uint64_t kStart = SharedSamples::kRingBytes - 56;
  thread.head = kStart;  // zeros, no records
  samples.put_thread(0, thread);
  samples.send_to(collector->listener());
  collector->pass();
  const auto bytes = written(1, 32);
  samples.put_ring(0, Bytes(bytes).subspan(56));
  samples.put(inprocess::kRingsAt + kStart, Bytes(bytes).first(56));
  thread = samples.thread(0);
  thread.head += bytes.size();
  samples.put_thread(0, thread);
  collector->pass();
  BOOST_TEST(collector.lines().back() == "sample first 10000000 32");
  BOOST_TEST(collector->counts().samples == 1U);
  BOOST_TEST(collector->counts().damaged == 1U);
}

BOOST_AUTO_TEST_CASE(what_a_recorder_writes_the_library_reads) {
  const inprocess::Listener listener("settings-test");
  inprocess::Settings settings;
  settings.hz = 10;
  settings.clock = inprocess::Clock::kWall;
  settings.stack_bytes = 4096;
  settings.follows_forks = false;
  std::string text = recording::settings_text(settings, listener);
  const std::string name = std::string(inprocess::kSettingsVariable) + "=";
  BOOST_REQUIRE(text.starts_with(name));
  const inprocess::Settings read = inprocess::parse_settings(text.substr(name.size()));
  BOOST_TEST(read.socket.view() == listener.socket_name());
  BOOST_TEST(read.key.view() == listener.key());
  BOOST_TEST(read.hz == settings.hz);
  BOOST_TEST((read.clock == settings.clock));
  BOOST_TEST(read.stack_bytes == settings.stack_bytes);
  BOOST_TEST(read.ring_bytes == settings.ring_bytes);
  BOOST_TEST(read.follows_forks == settings.follows_forks);
}

BOOST_AUTO_TEST_SUITE_END()
