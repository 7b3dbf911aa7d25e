// SPDX-License-Identifier: MIT
#include "malloctrace/processes.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstring>

#include "support/heap_builder.h"

namespace {

using namespace pe;
using malloctrace::HeapOfProcess;
using malloctrace::Processes;
using pe::testing::HeapBuilder;

/// A socket connected to where `processes` listens.
Fd connect_to(const Processes& processes) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& name = processes.listener().socket_name();
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0)
    throw std::runtime_error("cannot connect");
  return socket;
}

void send_fds(const Fd& socket, const std::vector<int>& fds) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[256] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    const std::size_t bytes = fds.size() * sizeof(int);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), fds.data(), bytes);
  }
  if (::sendmsg(socket.get(), &message, MSG_NOSIGNAL) != 1)
    throw std::runtime_error("cannot send");
}

HeapBuilder with_bytes(std::uint64_t bytes) {
  HeapBuilder b;
  b.site(0, {.allocated_bytes = bytes});
  return b;
}

/// What is heard of processes: "running PID BYTES".
struct Heard {
  std::vector<std::string> lines;
  void operator()(const HeapOfProcess& process) {
    constexpr const char* kFates[] = {"running ", "ended ", "was "};
    lines.push_back(kFates[static_cast<int>(process.fate)] + std::to_string(process.pid) + " " +
                    std::to_string(process.heap.total().allocated_bytes));
  }
};

/// Waits for what `processes` says is there to be done, and does it.
void wait_and_pass(Processes& processes) {
  pollfd polled{processes.fd(), POLLIN, 0};
  constexpr int kPatienceMs = 20'000;
  BOOST_REQUIRE(::poll(&polled, 1, kPatienceMs) == 1);
  processes.pass();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(traced_processes)

BOOST_AUTO_TEST_CASE(a_process_that_runs_is_told_the_time_and_can_be_read) {
  Heard heard;
  Processes processes([&](const HeapOfProcess& process) { heard(process); });
  const Fd memory = with_bytes(123).build();
  processes.tick(7);
  const Fd socket = connect_to(processes);
  processes.pass();  // nothing was sent yet
  BOOST_TEST(processes.running() == 0U);
  send_fds(socket, {memory.get()});
  wait_and_pass(processes);
  processes.tick(9);
  BOOST_TEST(processes.running() == 1U);
  heap::Header header;
  BOOST_REQUIRE(::pread(memory.get(), &header, sizeof header, 0) ==
                static_cast<ssize_t>(sizeof header));
  BOOST_TEST(header.tick == 9U);
  BOOST_TEST(header.tick_ms == 100U);
  processes.for_each_running([&](const HeapOfProcess& process) { heard(process); });
  BOOST_TEST(
      heard.lines == std::vector<std::string>{"running " + std::to_string(::getpid()) + " 123"},
      boost::test_tools::per_element());
  BOOST_TEST(processes.refused().empty());
}

BOOST_AUTO_TEST_CASE(a_process_is_read_when_it_has_ended_however_it_ended) {
  Heard heard;
  Processes processes([&](const HeapOfProcess& process) { heard(process); });
  const Fd memory = with_bytes(55).build();
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      send_fds(connect_to(processes), {memory.get()});
    } catch (...) {
      ::_exit(1);
    }
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(WIFSIGNALED(status));
  wait_and_pass(processes);
  BOOST_TEST(heard.lines == std::vector<std::string>{"ended " + std::to_string(child) + " 55"},
             boost::test_tools::per_element());
  BOOST_TEST(processes.running() == 0U);
}

BOOST_AUTO_TEST_CASE(a_second_program_of_a_process_ends_the_first) {
  Heard heard;
  Processes processes([&](const HeapOfProcess& process) { heard(process); });
  const Fd first = with_bytes(1).build(), second = with_bytes(2).build();
  send_fds(connect_to(processes), {first.get()});
  send_fds(connect_to(processes), {second.get()});
  wait_and_pass(processes);
  processes.for_each_running([&](const HeapOfProcess& process) { heard(process); });
  const std::string pid = std::to_string(::getpid());
  BOOST_TEST(
      heard.lines == (std::vector<std::string>{"was " + pid + " 1", "running " + pid + " 2"}),
      boost::test_tools::per_element());
}

// A program that allocates after a fork, and then begins another, may have been accepted before it
// sent, and the other at once: then the numbers of the other were read too early, and lost.
BOOST_AUTO_TEST_CASE(programs_of_a_process_follow_each_other_as_they_connected) {
  Heard heard;
  Processes processes([&](const HeapOfProcess& process) { heard(process); });
  const Fd first = with_bytes(1).build(), second = with_bytes(2).build();
  const Fd before = connect_to(processes);
  processes.pass();  // accepted, and nothing has come
  send_fds(before, {first.get()});
  send_fds(connect_to(processes), {second.get()});
  wait_and_pass(processes);
  processes.for_each_running([&](const HeapOfProcess& process) { heard(process); });
  const std::string pid = std::to_string(::getpid());
  BOOST_TEST(
      heard.lines == (std::vector<std::string>{"was " + pid + " 1", "running " + pid + " 2"}),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(who_finds_no_descriptor_waits_and_nothing_spins) {
  Processes processes([](const HeapOfProcess&) {});
  const Fd memory = HeapBuilder().build(), socket = connect_to(processes);
  send_fds(socket, {memory.get()});
  rlimit before{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int lowest_free = ::dup(STDERR_FILENO);
  ::close(lowest_free);
  const rlimit none{static_cast<rlim_t>(lowest_free), before.rlim_max};
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  processes.pass();
  pollfd polled{processes.fd(), POLLIN, 0};
  const int ready = ::poll(&polled, 1, 0);
  processes.pass();
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  BOOST_TEST(ready == 0);
  BOOST_TEST(processes.running() == 0U);
  processes.pass();
  BOOST_TEST(processes.running() == 1U);
  const Fd again = connect_to(processes);
  BOOST_TEST(::poll(&polled, 1, 20'000) == 1);
}

BOOST_AUTO_TEST_CASE(why_a_process_is_not_traced_is_told) {
  Processes processes([](const HeapOfProcess&) {});
  const auto say = [&](const std::string& reason) {
    const Fd socket = connect_to(processes);
    BOOST_REQUIRE(::send(socket.get(), reason.data(), reason.size(), MSG_NOSIGNAL) > 0);
    processes.pass();
  };
  say("no memory");
  say("no memory");
  BOOST_TEST((processes.refused() == std::map<std::string, std::uint64_t>{
                                         {"of a process that is not recorded: no memory:", 2}}));
  for (int i = 0; i < 100; ++i)
    say("reason " + std::to_string(i));
  BOOST_TEST(processes.refused().size() < 20U);
}

BOOST_AUTO_TEST_CASE(with_few_descriptors_all_are_read_in_the_end) {
  constexpr std::size_t kProcesses = 20;
  Heard heard;
  Processes processes([&](const HeapOfProcess& process) { heard(process); });
  const Fd memory = with_bytes(3).build();
  int has_sent[2];
  BOOST_REQUIRE(::pipe(has_sent) == 0);
  const Fd read_end(has_sent[0]), write_end(has_sent[1]);
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        send_fds(connect_to(processes), {memory.get()});
      } catch (...) {
        ::_exit(1);
      }
      (void)!::write(write_end.get(), "", 1);
      ::pause();
    }
    children.push_back(child);
    char byte;
    BOOST_REQUIRE(::read(read_end.get(), &byte, 1) == 1);
  }
  rlimit before{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int lowest_free = ::dup(STDERR_FILENO);
  ::close(lowest_free);
  const rlimit few{static_cast<rlim_t>(lowest_free + 5), before.rlim_max};
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  processes.pass();
  const std::size_t running = processes.running();
  processes.leave([&](const HeapOfProcess& process) { heard(process); });
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  BOOST_TEST(running < kProcesses);
  BOOST_TEST(heard.lines.size() == kProcesses);
  BOOST_TEST(processes.refused().empty());
}

BOOST_AUTO_TEST_CASE(what_is_no_shared_memory_is_refused_and_counted) {
  Processes processes([](const HeapOfProcess&) { BOOST_ERROR("heard of a process"); });
  HeapBuilder other;
  other.header.magic = 1;
  const Fd unsealed = HeapBuilder().build(0), wrong = other.build(), good = HeapBuilder().build();
  send_fds(connect_to(processes), {unsealed.get()});
  send_fds(connect_to(processes), {wrong.get()});
  send_fds(connect_to(processes), {STDERR_FILENO});
  send_fds(connect_to(processes), {});
  send_fds(connect_to(processes), {good.get(), good.get()});
  (void)connect_to(processes);  // and goes away
  wait_and_pass(processes);
  BOOST_TEST(processes.running() == 0U);
  const std::map<std::string, std::uint64_t> wanted{
      {"that sent shared memory that is not sealed against shrinking", 1},
      {"that sent shared memory of another version", 1},
      {"that sent no shared memory of the right size", 1},
      {"that sent no shared memory", 3}};
  BOOST_TEST((processes.refused() == wanted));
}

BOOST_AUTO_TEST_SUITE_END()
