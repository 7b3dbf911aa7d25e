// SPDX-License-Identifier: MIT
#include "inprocess/sampler/collector.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "support/sample_record.h"
#include "support/shared_samples.h"

namespace {

using namespace pe;
using pe::testing::SharedSamples;

class Reports : public inprocess::Events {
 public:
  void on_process(const inprocess::ProcessBegan& process) override {
    lines.push_back("process " + std::string(process.command));
    if (on_begin)
      on_begin();
    maps = process.maps;
  }
  void on_thread(const inprocess::ThreadOf& thread, std::uint64_t /*time_ns*/) override {
    lines.push_back("thread " + name_of(thread.tid));
  }
  void on_sample(const inprocess::ThreadOf& thread, const stream::Sample& sample) override {
    BOOST_TEST(sample.pid == static_cast<std::uint32_t>(thread.pid));
    BOOST_TEST(sample.tid == static_cast<std::uint32_t>(thread.tid));
    lines.push_back("sample " + name_of(thread.tid) + " " + std::to_string(sample.period) + " " +
                    std::to_string(sample.user_stack.size()) +
                    (sample.has_full_copy() ? " cut" : ""));
  }
  void on_thread_end(const inprocess::ThreadOf& thread) override {
    lines.push_back("thread-end " + name_of(thread.tid));
  }
  void on_process_end(pid_t /*pid*/) override { lines.emplace_back("process-end"); }

  std::vector<std::string> lines;
  std::string maps;
  std::function<void()> on_begin;

 private:
  static std::string name_of(pid_t tid) {
    return tid == ::getpid() ? "first" : std::to_string(tid);
  }
};

inprocess::Thread live_thread(std::uint32_t tid) {
  inprocess::Thread thread{};
  thread.state = inprocess::kLive;
  thread.tid = tid;
  return thread;
}

constexpr std::uint64_t kPeriodNs = kNsPerSecond / SharedSamples::kHz;

/// A record as a process writes it.  Its pid and tid are of another process.
std::vector<std::byte> record(std::uint64_t weight, std::size_t stack_bytes, bool is_cut = false) {
  inprocess::SampleHead head{};
  head.pid = head.tid = 1;
  head.period_ns = weight * kPeriodNs;
  return testing::sample_record(head, stack_bytes, is_cut);
}

/// Higher than any of this machine (pid_max).
constexpr std::uint32_t kNobody = 0x7ffffff0;

/// The collector sees a process with one thread, which has ended.
void send_ended(SharedSamples& samples, std::uint32_t tid, std::string_view name,
                inprocess::Collector& collector) {
  samples.header.threads = 1;
  inprocess::Thread thread = live_thread(tid);
  thread.state = inprocess::kEnded;
  name.copy(thread.name, sizeof thread.name - 1);
  samples.put_thread(0, thread);
  samples.send_to(collector.listener());
  collector.pass();
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
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  samples.header.threads = 1;
  samples.header.maps_bytes = 5;
  samples.put(inprocess::kMapsAt, std::as_bytes(std::span("a map", 5)));
  inprocess::Thread thread = live_thread(samples.header.pid);
  auto bytes = record(1, 16);
  const auto second = record(4, 8, true);
  bytes.insert(bytes.end(), second.begin(), second.end());
  thread.head = bytes.size();
  thread.lost_samples = 2;
  thread.lost_weight = 7;
  samples.put_ring(0, bytes);
  samples.put_thread(0, thread);
  samples.send_to(collector.listener());
  collector.pass();
  collector.pass();
  BOOST_TEST(reports.lines == (std::vector<std::string>{"process tested", "thread first",
                                                        "sample first 10000000 16",
                                                        "sample first 40000000 8 cut"}),
             boost::test_tools::per_element());
  BOOST_TEST(reports.maps == "a map");
  BOOST_TEST(samples.thread(0).tail == bytes.size());
  BOOST_TEST(collector.counts().weight == 5U);
  BOOST_TEST(collector.counts().lost_samples == 2U);
  BOOST_TEST(collector.counts().lost_weight == 7U);
  BOOST_TEST(collector.counts().damaged == 0U);
}

BOOST_AUTO_TEST_CASE(a_slot_is_free_again_once_the_last_samples_of_its_thread_are_taken) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  samples.header.threads = 2;
  inprocess::Thread thread = live_thread(kNobody);
  thread.state = inprocess::kEnded;
  const auto bytes = record(1, 0);
  thread.head = bytes.size();
  samples.put_ring(1, bytes);
  samples.put_thread(1, thread);
  samples.send_to(collector.listener());
  collector.pass();
  BOOST_TEST(samples.thread(1).state == inprocess::kFree);
  BOOST_TEST(reports.lines.back() == "thread-end " + std::to_string(kNobody));
  // Another takes it, and goes on where the first has ended.
  inprocess::Thread next = samples.thread(1);
  next.state = inprocess::kLive;
  next.tid = kNobody - 1;
  samples.put_thread(1, next);
  collector.pass();
  BOOST_TEST(reports.lines.back() == "thread " + std::to_string(kNobody - 1));
  BOOST_TEST(collector.counts().threads == 2U);
}

BOOST_AUTO_TEST_CASE(unwanted_threads_are_told_so_and_give_no_samples) {
  Reports reports;
  inprocess::Collector collector(reports, {.names = {"nobody-has-this"}, .tids = {}});
  SharedSamples samples;
  samples.header.threads = 1;
  inprocess::Thread thread = live_thread(samples.header.pid);
  const auto bytes = record(1, 0);
  thread.head = bytes.size();
  samples.put_ring(0, bytes);
  samples.put_thread(0, thread);
  samples.send_to(collector.listener());
  collector.pass();
  BOOST_TEST(collector.counts().samples == 0U);
  BOOST_TEST(samples.thread(0).is_unwanted == 1U);
  BOOST_TEST(collector.threads().missed().names.contains("nobody-has-this"));
  BOOST_TEST(collector.threads().seen_names().size() == 1U);
  BOOST_TEST(samples.thread(0).tail == bytes.size());
}

BOOST_AUTO_TEST_CASE(hostile_numbers_are_counted_and_nothing_else_happens) {
  Reports reports;
  inprocess::Collector collector(reports, {});
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
  samples.send_to(collector.listener());
  collector.pass();
  BOOST_TEST(collector.counts().samples == 0U);
  BOOST_TEST(collector.counts().damaged == 2U);
  BOOST_TEST(collector.counts().threads == 2U);
  // What comes after is read again.
  inprocess::Thread good = samples.thread(1);
  const auto bytes = record(1, 0);
  samples.put(inprocess::kRingsAt + SharedSamples::kRingBytes + 1000, bytes);
  good.head = 1000 + bytes.size();
  samples.put_thread(1, good);
  collector.pass();
  BOOST_TEST(collector.counts().samples == 1U);
}

/// Collects the samples of a ring with these bytes.  Returns the collector's count of damage.
std::uint64_t damage_of(Bytes bytes, Reports& reports) {
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  samples.header.threads = 1;
  inprocess::Thread thread = live_thread(samples.header.pid);
  thread.head = bytes.size();
  samples.put_ring(0, bytes);
  samples.put_thread(0, thread);
  samples.send_to(collector.listener());
  collector.pass();
  return collector.counts().damaged;
}

BOOST_AUTO_TEST_CASE(records_that_contradict_themselves_end_the_reading_of_a_ring) {
  const std::vector<std::byte> one = record(1, 64);
  std::vector<std::byte> good(one);
  good.insert(good.end(), one.begin(), one.end());
  const auto read = [&](std::size_t at, std::uint64_t value, std::size_t size) {
    std::vector<std::byte> bytes(good);
    std::memcpy(bytes.data() + one.size() + at, &value, size);
    Reports reports;
    const std::uint64_t damaged = damage_of(bytes, reports);
    BOOST_TEST(damaged <= 1U);
    return damaged == 0 ? 2U : static_cast<unsigned>(reports.lines.size() - 2);  // process, thread
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
  Reports reports;
  BOOST_TEST(damage_of(Bytes(good).first(100), reports) == 1U);
}

BOOST_AUTO_TEST_CASE(an_impossible_period_becomes_the_nearest_possible_one) {
  for (const auto& [written, read] :
       {std::pair{0UL, kPeriodNs}, {kPeriodNs - 1, kPeriodNs}, {~0UL, 0xffffffff * kPeriodNs}}) {
    inprocess::SampleHead head{};
    head.period_ns = written;
    Reports reports;
    BOOST_TEST(damage_of(testing::sample_record(head, 0), reports) == 0U);
    BOOST_TEST(reports.lines.back() == "sample first " + std::to_string(read) + " 0");
  }
}

BOOST_AUTO_TEST_CASE(a_sample_of_the_process_timer_represents_at_least_a_tick) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  samples.header.threads = 1;
  samples.header.hz = inprocess::kMostHz;
  samples.header.timer_kind = static_cast<std::uint32_t>(inprocess::TimerKind::kProcess);
  inprocess::Thread thread = live_thread(samples.header.pid);
  const auto bytes = testing::sample_record({}, 0);
  thread.head = bytes.size();
  samples.put_ring(0, bytes);
  samples.put_thread(0, thread);
  samples.send_to(collector.listener());
  collector.pass();
  const std::uint64_t period_ns = kNsPerSecond / inprocess::kMostHz;
  BOOST_TEST(reports.lines.back() ==
             "sample first " + std::to_string(std::max(period_ns, inprocess::tick_ns())) + " 0");
  BOOST_TEST(collector.counts().weight == 1U);
}

BOOST_AUTO_TEST_CASE(what_a_process_has_left_is_taken_when_it_has_ended) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    SharedSamples samples;
    samples.header.threads = 1;
    inprocess::Thread thread = live_thread(kNobody);
    const auto bytes = record(3, 8);
    thread.head = bytes.size();
    samples.put_ring(0, bytes);
    samples.put_thread(0, thread);
    samples.send_to(collector.listener());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  collector.pass();
  const std::string tid = std::to_string(kNobody);
  BOOST_TEST(reports.lines == (std::vector<std::string>{"process tested", "thread " + tid,
                                                        "sample " + tid + " 30000000 8",
                                                        "thread-end " + tid, "process-end"}),
             boost::test_tools::per_element());
  BOOST_TEST(collector.running() == 0U);
}

BOOST_AUTO_TEST_CASE(a_chosen_thread_that_was_there_is_not_missed) {
  Reports reports;
  inprocess::Collector collector(reports, {.names = {}, .tids = {::getpid(), kNobody}});
  SharedSamples samples;
  samples.header.threads = 1;
  samples.put_thread(0, live_thread(samples.header.pid));
  samples.send_to(collector.listener());
  collector.pass();
  BOOST_TEST(collector.threads().missed().tids == std::set<pid_t>{kNobody});
}

BOOST_AUTO_TEST_CASE(programs_that_a_process_begins_without_the_library_are_counted) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  samples.header.left_out = 2;
  samples.send_to(collector.listener());
  collector.pass();
  collector.pass();
  BOOST_TEST(collector.counts().left_out == 2U);
}

BOOST_AUTO_TEST_CASE(which_timers_a_process_has_may_turn_out_later) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  samples.send_to(collector.listener());
  collector.pass();
  BOOST_TEST(collector.counts().by_process_timer == 0U);
  samples.header.timer_kind = static_cast<std::uint32_t>(inprocess::TimerKind::kProcess);
  samples.put(0, std::as_bytes(std::span(&samples.header, 1)));
  collector.pass();
  collector.pass();
  BOOST_TEST(collector.counts().by_process_timer == 1U);
}

BOOST_AUTO_TEST_CASE(a_process_that_begins_another_program_ends_and_begins) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples first;
  first.send_to(collector.listener());
  collector.pass();
  SharedSamples second;
  second.send_to(collector.listener());
  collector.pass();
  BOOST_TEST(reports.lines ==
                 (std::vector<std::string>{"process tested", "process-end", "process tested"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_a_process_sends_late_comes_before_what_it_sends_as_another_program) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  // Connected and interrupted: the collector has come meanwhile.
  const Fd late(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& name = collector.listener().socket_name();
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  BOOST_REQUIRE(
      ::connect(late.get(), reinterpret_cast<const sockaddr*>(&address),
                static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) == 0);
  collector.pass();
  BOOST_REQUIRE(::send(late.get(), "nothing", 7, 0) == 7);
  SharedSamples next;
  std::strcpy(next.header.command, "next");
  next.send_to(collector.listener());
  std::size_t refused_before = 0;
  reports.on_begin = [&] { refused_before = collector.refused().size(); };
  collector.pass();
  BOOST_TEST(reports.lines == (std::vector<std::string>{"process next"}),
             boost::test_tools::per_element());
  BOOST_TEST(refused_before == 1U);  // it was looked at, and had sent no memory
}

BOOST_AUTO_TEST_CASE(threads_that_the_process_has_not_found_are_told_to_it) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  samples.send_to(collector.listener());
  collector.pass();
  BOOST_TEST(samples.header_now().wanted_tids[0] == samples.header.pid);
}

BOOST_AUTO_TEST_CASE(a_thread_that_has_just_ended_is_not_asked_for) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  send_ended(samples, samples.header.pid, "t", collector);  // it is in /proc still
  BOOST_TEST(reports.lines.back() == "thread-end first");
  BOOST_TEST(samples.header_now().wanted_tids[0] == 0U);
}

BOOST_AUTO_TEST_CASE(a_thread_that_was_asked_for_too_late_is_none) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  send_ended(samples, kNobody, "", collector);
  BOOST_TEST(collector.counts().threads == 0U);
  BOOST_TEST(reports.lines.size() == 1U);  // the process
  BOOST_TEST(samples.thread(0).state == inprocess::kFree);
}

BOOST_AUTO_TEST_CASE(a_thread_that_ended_without_telling_gives_its_slot_back) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  samples.header.threads = 1;
  samples.put_thread(0, live_thread(kNobody));
  samples.send_to(collector.listener());
  collector.pass();
  collector.pass();
  BOOST_TEST(reports.lines.back() == "thread-end " + std::to_string(kNobody));
  BOOST_TEST(samples.thread(0).state == inprocess::kFree);
}

BOOST_AUTO_TEST_CASE(a_record_that_goes_on_at_the_beginning_of_the_ring_is_whole) {
  Reports reports;
  inprocess::Collector collector(reports, {});
  SharedSamples samples;
  samples.header.threads = 1;
  inprocess::Thread thread = live_thread(samples.header.pid);
  constexpr std::uint64_t kStart = SharedSamples::kRingBytes - 56;
  thread.head = kStart;  // zeros, no records
  samples.put_thread(0, thread);
  samples.send_to(collector.listener());
  collector.pass();
  const auto bytes = record(1, 32);
  samples.put_ring(0, Bytes(bytes).subspan(56));
  samples.put(inprocess::kRingsAt + kStart, Bytes(bytes).first(56));
  thread = samples.thread(0);
  thread.head += bytes.size();
  samples.put_thread(0, thread);
  collector.pass();
  BOOST_TEST(reports.lines.back() == "sample first 10000000 32");
  BOOST_TEST(collector.counts().samples == 1U);
  BOOST_TEST(collector.counts().damaged == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
