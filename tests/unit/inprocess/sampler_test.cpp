// This program samples itself as the loaded library does, without its hooks.  With ThreadSanitizer
// it shows that threads, their handlers and the reader share nothing without order.
// SPDX-License-Identifier: MIT
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "recording/inprocess/atomics.h"
#include "recording/inprocess/listener.h"
#include "recording/inprocess/runtime/exec_hooks.h"
#include "recording/signal/core/alternate_stack.h"
#include "recording/signal/core/handler.h"
#include "recording/signal/core/process.h"
#include "recording/signal/shared_memory.h"

namespace {

using namespace pe;
using namespace pe::inprocess;

void ignore_signal(int /*signal*/) {}

struct sigaction action_of(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  return action;
}

std::uint64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

void spin(std::uint64_t ms) {
  for (const std::uint64_t until = thread_cpu_ns() + ms * kNsPerMs; thread_cpu_ns() < until;) {
  }
}

/// Reads the rings as a recorder does, and frees the slots of threads that have ended.
class Reader {
 public:
  explicit Reader(Listener& listener) {
    listener.take_in([this](pid_t /*pid*/, Fd file) {
      auto checked = SharedMemory::check(std::move(file));
      if (auto* memory = std::get_if<SharedMemory>(&checked))
        memory_.emplace(std::move(*memory));
    });
  }
  [[nodiscard]] bool has_memory() const { return memory_.has_value(); }
  [[nodiscard]] Header& header() const { return memory_->live_header(); }

  void pass() {
    for (std::uint32_t slot = 0; slot < memory_->threads(); ++slot) {
      Thread& thread = memory_->thread(slot);
      const std::uint32_t state = load_published(thread.state);
      const std::uint64_t head = load_published(thread.head), tail = load_relaxed(thread.tail);
      if (state != kLive && state != kEnded)
        continue;
      std::vector<std::byte> bytes;
      are_readable_ = are_readable_ && memory_->read_ring(slot, tail, head, bytes);
      ByteReader records(bytes);
      while (stream::take_record(records))
        ++records_;
      are_readable_ = are_readable_ && records.empty();
      publish(thread.tail, head);
      if (state == kEnded)
        publish(thread.state, static_cast<std::uint32_t>(kFree));
    }
  }
  [[nodiscard]] std::uint64_t records() const { return records_; }
  [[nodiscard]] bool are_readable() const { return are_readable_; }

 private:
  std::optional<SharedMemory> memory_;
  std::uint64_t records_ = 0;
  bool are_readable_ = true;
};

/// This process is sampled from the first use on, and this reads it.
Reader& sampled() {
  static Listener listener("sampler-test");
  static std::optional<Reader> reader;
  if (!reader) {
    const std::string settings =
        "PE_SAMPLER=socket=" + listener.socket_name() + ",hz=1000,ring=65536";
    const char* const environment[] = {settings.c_str(), nullptr};
    set_real_sigaction(::sigaction, ::sigaction);
    begin_process(environment);
    BOOST_REQUIRE(process.samples());
    reader.emplace(listener);
    BOOST_REQUIRE(reader->has_memory());
  }
  return *reader;
}

std::atomic<int> forbidden_calls{0};

void count_forbidden(int /*signal*/) { ++forbidden_calls; }

/// From now on, gettid(2) sends the calling thread SIGSYS.  Returns false on failure.
bool forbid_gettid() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(code)), code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return false;
  note_filter(code);
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sampler_process)

BOOST_AUTO_TEST_CASE(the_child_of_a_paused_thread_is_not_sampled_and_counted) {
  Reader& reader = sampled();
  const std::uint64_t before = load_relaxed(reader.header().without_stack);
  BOOST_REQUIRE(pause_this_thread());
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(process.samples() ? 1 : 0);
  int status = -1;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  continue_this_thread();
  BOOST_TEST(status == 0);
  BOOST_TEST(load_relaxed(reader.header().without_stack) == before + 1);
}

// A filter of system calls that ends the program for gettid(2) would end it in our handler.
BOOST_AUTO_TEST_CASE(no_handler_asks_for_its_thread_s_number_once_a_filter_may_forbid_that) {
  sampled();
  struct sigaction before = {};
  const struct sigaction action = action_of(count_forbidden);
  BOOST_REQUIRE(::sigaction(SIGSYS, &action, &before) == 0);
  std::atomic<pid_t> tid{0};
  std::atomic<std::uint32_t> found{kNoSlot};
  bool is_forbidden = false, is_own = true;
  std::uint32_t slot = 0;
  int calls = -1;
  std::thread thread([&] {  // checks of Boost.Test are for one thread
    tid = ::gettid();
    while (found == kNoSlot)
      std::this_thread::yield();
    is_forbidden = forbid_gettid();
    is_own = is_slot_of_this_thread(found);
    slot = slot_of_this_thread();
    calls = forbidden_calls.load();
    ::syscall(SYS_gettid);
  });
  while (tid == 0)
    std::this_thread::yield();
  found = begin_found_thread(tid);
  BOOST_TEST(found != kNoSlot);
  thread.join();
  BOOST_TEST(is_forbidden);
  BOOST_TEST(!is_own);
  BOOST_TEST(slot == kNoSlot);
  BOOST_TEST(calls == 0);
  BOOST_TEST(forbidden_calls > calls);  // the filter works
  store_relaxed(process.is_closed, 0U);
  store_relaxed(process.can_copy, 1U);
  ::sigaction(SIGSYS, &before, nullptr);
}

BOOST_AUTO_TEST_CASE(threads_handlers_and_the_reader_agree) {
  Reader& reader = sampled();

  // An alternate stack that the kernel refuses changes nothing.
  std::array<char, 64> few{};
  const stack_t tiny{few.data(), 0, few.size()};
  const std::uint64_t without_stack = load_relaxed(reader.header().without_stack);
  BOOST_TEST(set_alternate_stack(&tiny, nullptr) == -1);
  BOOST_TEST(load_relaxed(process.own[slot_of_this_thread()].is_armed) == 1U);
  BOOST_TEST(load_relaxed(reader.header().without_stack) == without_stack);

  // Setters of the program's action get each action once, as the one before.
  const struct sigaction first = action_of(SIG_IGN), second = action_of(ignore_signal);
  std::atomic<int> running{0};
  std::atomic<long> firsts_set{0}, firsts_seen{0};
  set_program_action(&second, nullptr);
  const auto work = [&](int number) {
    begin_thread();
    for (int round = 0; round < 50; ++round) {
      const bool is_first = (round + number) % 2 == 0;
      struct sigaction before = {};
      set_program_action(is_first ? &first : &second, &before);
      firsts_set += is_first ? 1 : 0;
      firsts_seen += before.sa_handler == SIG_IGN ? 1 : 0;
      spin(1);
    }
    --running;
  };
  for (int generation = 0; generation < 3; ++generation) {
    std::vector<std::thread> threads;
    running = 4;
    for (int number = 0; number < 4; ++number)
      threads.emplace_back(work, number);
    while (running != 0) {
      reader.pass();
      std::this_thread::yield();
    }
    for (std::thread& thread : threads)
      thread.join();
  }
  struct sigaction last = {};
  set_program_action(&second, &last);
  firsts_seen += last.sa_handler == SIG_IGN ? 1 : 0;
  BOOST_TEST(firsts_seen == firsts_set);
  stop_process(WhyStopped::kOwnTimer);
  reader.pass();
  BOOST_TEST(reader.are_readable());
  BOOST_TEST(reader.records() > 0U);
  BOOST_TEST(load_relaxed(reader.header().why_stopped) ==
             static_cast<std::uint32_t>(WhyStopped::kOwnTimer));
}

BOOST_AUTO_TEST_SUITE_END()
