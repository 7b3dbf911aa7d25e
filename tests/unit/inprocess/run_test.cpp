// This program profiles itself.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stackpipe/sigprof.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <ctime>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/io/input.h"
#include "recording/inprocess/runtime/timers.h"
#include "stream/session.h"

namespace {

using namespace pe;

/// Nothing is asserted about how many samples there are: that is the kernel's to decide.
[[gnu::noinline]] void spin(std::uint64_t ms) {
  const auto cpu_ms = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
           static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
  };
  for (const std::uint64_t until = cpu_ms() + ms; cpu_ms() < until;) {
  }
}

struct Read {
  std::uint64_t samples = 0, period_ns = 0;
  stream::Counts counts;
  std::string damage;
  std::set<std::uint32_t> tids;
};

Read read_stream(const Fd& file) {
  ::lseek(file.get(), 0, SEEK_SET);
  Input input = Input::open("-", file.get());
  stream::Session session(input);
  Read read;
  while (session.next())
    if (const auto& sample = session.sample()) {
      ++read.samples;
      read.period_ns += sample->period;
      read.tids.insert(sample->tid);
    }
  read.counts = session.counts();
  read.damage = session.damage();
  return read;
}

Fd memory() { return Fd(::memfd_create("stream", MFD_CLOEXEC)); }

void check_whole(const Fd& file, const sp_sigprof_counts& counts) {
  const Read read = read_stream(file);
  BOOST_TEST(read.damage == "");
  BOOST_TEST(read.counts.malformed_records == 0U);
  BOOST_TEST(read.counts.out_of_order == 0U);
  BOOST_TEST(read.samples == counts.samples);
  BOOST_TEST(read.period_ns == counts.sampled_ns);
  BOOST_TEST(read.counts.lost == counts.lost_samples);
  BOOST_TEST(static_cast<std::uint64_t>(::lseek(file.get(), 0, SEEK_END)) == counts.bytes);
}

sp_sigprof_options wall_at(std::uint32_t hz) {
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  options.hz = hz;
  options.clock = SP_SIGPROF_WALL;
  return options;
}

/// A clock that holds up one handler as long as the test wants.
struct HeldClock {
  enum class Role { kWriter, kOther, kHeld };
  static int read(clockid_t clock, timespec* now) {
    const int result = ::clock_gettime(clock, now);
    if (role == Role::kWriter)
      ++reads_of_writer;
    if (role == Role::kHeld && !holds.exchange(true))
      while (!is_released)
        ::sched_yield();
    return result;
  }

  inline static thread_local Role role = Role::kWriter;
  inline static std::atomic<int> reads_of_writer = 0;
  inline static std::atomic<bool> holds = false, is_released = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(sigprof_run)

BOOST_AUTO_TEST_CASE(the_stream_holds_what_the_counts_say) {
  const Fd file = memory();
  const sp_sigprof_options options = wall_at(1000);
  sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
  BOOST_REQUIRE(sp_sigprof_start(&options, file.get()) == SP_SIGPROF_OK);
  spin(100);
  BOOST_TEST(sp_sigprof_stop(&counts) == SP_SIGPROF_OK);
  BOOST_TEST(counts.samples > 0U);
  BOOST_TEST(counts.threads >= 1U);
  check_whole(file, counts);
}

BOOST_AUTO_TEST_CASE(a_sample_of_an_interrupted_handler_is_in_order) {
  const Fd file = memory();
  const sp_sigprof_options options = wall_at(1000);
  sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
  HeldClock::role = HeldClock::Role::kOther;
  inprocess::set_real_clock(HeldClock::read);
  BOOST_REQUIRE(sp_sigprof_start(&options, file.get()) == SP_SIGPROF_OK);
  std::thread held([] {
    HeldClock::role = HeldClock::Role::kHeld;
    while (!HeldClock::is_released)
      spin(1);
  });
  while (!HeldClock::holds)
    spin(1);
  // More than three passes: each reads the clock a few times.
  constexpr int kReads = 30;
  const int before = HeldClock::reads_of_writer;
  while (HeldClock::reads_of_writer < before + kReads)
    spin(1);
  HeldClock::is_released = true;
  held.join();
  spin(10);
  BOOST_TEST(sp_sigprof_stop(&counts) == SP_SIGPROF_OK);
  inprocess::set_real_clock(::clock_gettime);
  check_whole(file, counts);
}

BOOST_AUTO_TEST_CASE(threads_may_come_and_go_and_add_themselves) {
  for (const std::uint32_t clock : {SP_SIGPROF_CPU, SP_SIGPROF_WALL}) {
    const Fd file = memory();
    sp_sigprof_options options = wall_at(1000);
    options.clock = clock;
    sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
    BOOST_REQUIRE(sp_sigprof_start(&options, file.get()) == SP_SIGPROF_OK);
    std::atomic<int> added = 0;
    for (int round = 0; round < 20; ++round) {
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i)
        threads.emplace_back([&added, i] {
          if (i % 2 == 0)
            added += sp_sigprof_add_this_thread() == SP_SIGPROF_OK ? 1 : 0;
          spin(5);
        });
      for (std::thread& thread : threads)
        thread.join();
    }
    BOOST_TEST(sp_sigprof_stop(&counts) == SP_SIGPROF_OK);
    BOOST_TEST(added == 40);
    BOOST_TEST(counts.threads > 40U);
    check_whole(file, counts);
  }
}

/// A loop in a page of its own, where nothing was mapped before.
struct FreshCode {
  FreshCode()
      : page(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0)) {
    // mov %edi, %ecx; sub $1, %ecx; jne; ret
    constexpr std::array<unsigned char, 8> kCode{0x89, 0xf9, 0x83, 0xe9, 1, 0x75, 0xfb, 0xc3};
    BOOST_REQUIRE(page != MAP_FAILED);
    std::memcpy(entry(), kCode.data(), kCode.size());
  }
  /// Not at the start of the page: sanitizers of clang 17 read the bytes before a function.
  [[nodiscard]] unsigned char* entry() const { return static_cast<unsigned char*>(page) + 64; }
  void run() const { reinterpret_cast<void (*)(int)>(entry())(40'000'000); }

  void* page;
};

BOOST_AUTO_TEST_CASE(code_is_told_no_later_than_the_samples_in_it) {
  const Fd file = memory();
  sp_sigprof_options options = wall_at(1000);
  options.ring_bytes = 65536;  // looked at often
  BOOST_REQUIRE(sp_sigprof_start(&options, file.get()) == SP_SIGPROF_OK);
  std::set<std::uint64_t> pages;
  for (int i = 0; i < 10; ++i) {
    const FreshCode code;
    pages.insert(reinterpret_cast<std::uint64_t>(code.page));
    code.run();
  }
  BOOST_TEST(sp_sigprof_stop(nullptr) == SP_SIGPROF_OK);

  ::lseek(file.get(), 0, SEEK_SET);
  Input input = Input::open("-", file.get());
  stream::Session session(input);
  std::uint64_t samples = 0, strangers = 0;
  while (session.next()) {
    const auto& sample = session.sample();
    if (!sample || !pages.contains(sample->ip / 4096 * 4096))
      continue;
    ++samples;
    strangers += session.processes().find(sample->pid, sample->ip) == nullptr ? 1 : 0;
  }
  BOOST_TEST(samples > 0U);
  BOOST_TEST(strangers == 0U);
}

BOOST_AUTO_TEST_CASE(it_may_be_stopped_while_threads_run_and_add_themselves) {
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!is_over) {
        std::thread([] {
          sp_sigprof_add_this_thread();
          spin(2);
        }).join();
      }
    });
  for (int round = 0; round < 20; ++round) {
    const Fd file = memory();
    const sp_sigprof_options options = wall_at(1000);
    sp_sigprof_counts counts = SP_SIGPROF_COUNTS;
    BOOST_REQUIRE(sp_sigprof_start(&options, file.get()) == SP_SIGPROF_OK);
    spin(10);
    BOOST_TEST(sp_sigprof_stop(&counts) == SP_SIGPROF_OK);
    check_whole(file, counts);
  }
  is_over = true;
  for (std::thread& thread : threads)
    thread.join();
}

BOOST_AUTO_TEST_CASE(several_threads_may_stop_it_and_one_does) {
  for (int round = 0; round < 20; ++round) {
    const Fd file = memory();
    BOOST_REQUIRE(sp_sigprof_start(nullptr, file.get()) == SP_SIGPROF_OK);
    std::atomic<int> stopped = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] { stopped += sp_sigprof_stop(nullptr) == SP_SIGPROF_OK ? 1 : 0; });
    for (std::thread& thread : threads)
      thread.join();
    BOOST_TEST(stopped == 1);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_refused) {
  sp_sigprof_options bad = SP_SIGPROF_OPTIONS;
  bad.hz = 5000;
  const Fd reading(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  BOOST_TEST(sp_sigprof_start(&bad, 1) == SP_SIGPROF_BAD_OPTION);
  BOOST_TEST(sp_sigprof_start(nullptr, -1) == SP_SIGPROF_BAD_FD);
  BOOST_TEST(sp_sigprof_start(nullptr, reading.get()) == SP_SIGPROF_BAD_FD);
  BOOST_TEST(sp_sigprof_stop(nullptr) == SP_SIGPROF_NOT_RUNNING);
  BOOST_TEST(sp_sigprof_add_this_thread() == SP_SIGPROF_NOT_RUNNING);
}

BOOST_AUTO_TEST_CASE(results_have_words) {
  std::set<std::string> texts;
  for (int result = SP_SIGPROF_OK; result <= SP_SIGPROF_NO_PROC; ++result)
    texts.insert(sp_sigprof_error(result));
  BOOST_TEST(texts.size() == SP_SIGPROF_NO_PROC + 1U);
  BOOST_TEST(sp_sigprof_error(-1) == std::string("an unknown error"));
  BOOST_TEST(sp_sigprof_error(1000) == std::string("an unknown error"));
}

BOOST_AUTO_TEST_SUITE_END()
