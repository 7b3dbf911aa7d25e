// SPDX-License-Identifier: MIT
#include "recording/sigprof/records.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace {

using namespace pe;
using inprocess::Sink;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    BOOST_REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    read = Fd(ends[0]);
    write = ends[1];
  }
  Fd read;
  int write = -1;
};

std::string read_all(int fd) {
  std::string text;
  std::array<char, 1000> room{};
  for (ssize_t n = 0; (n = ::read(fd, room.data(), room.size())) > 0;)
    text.append(room.data(), static_cast<std::size_t>(n));
  return text;
}

Bytes bytes_of_text(const std::string& text) { return std::as_bytes(std::span(text)); }

/// As in the library's own thread.
struct BlockedSignals {
  BlockedSignals() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }
};

constexpr std::uint64_t kLongAgo = 1;

}  // namespace

BOOST_AUTO_TEST_SUITE(sigprof_sink)

BOOST_AUTO_TEST_CASE(a_reader_gets_all_however_slow_it_is) {
  Pipe pipe;
  std::uint64_t never = 0;
  Sink sink{};
  sink.open(pipe.write, never);
  const std::string text(300'000, 'x');
  std::string got;
  std::thread reader([&] { got = read_all(pipe.read.get()); });
  BOOST_TEST(sink.write(bytes_of_text(text)));
  sink.close();
  reader.join();
  BOOST_TEST((got == text));
  BOOST_TEST(sink.written_bytes() == text.size());
  BOOST_TEST((sink.state() == Sink::State::kOpen));
}

BOOST_AUTO_TEST_CASE(a_reader_that_takes_nothing_is_given_up_at_the_deadline) {
  Pipe pipe;
  Sink sink{};
  sink.open(pipe.write, kLongAgo);
  BOOST_TEST(!sink.write(bytes_of_text(std::string(300'000, 'x'))));
  BOOST_TEST((sink.state() == Sink::State::kTooSlow));
  // Nothing follows, though there may be room now.
  const std::uint64_t written = sink.written_bytes();
  pipe.read = Fd();
  BOOST_TEST(!sink.write(bytes_of_text("more")));
  BOOST_TEST(sink.written_bytes() == written);
  sink.close();
}

BOOST_AUTO_TEST_CASE(a_closed_pipe_is_an_error_and_no_more) {
  std::thread([] {
    const BlockedSignals blocked;
    Pipe pipe;
    std::uint64_t never = 0;
    Sink sink{};
    sink.open(pipe.write, never);
    pipe.read = Fd();
    BOOST_TEST(!sink.write(bytes_of_text("text")));
    BOOST_TEST((sink.state() == Sink::State::kFailed));
    BOOST_TEST(sink.error() == EPIPE);
    sink.close();
  }).join();
}

BOOST_AUTO_TEST_CASE(a_socket_that_is_closed_sends_no_signal) {
  std::array<int, 2> ends{};
  BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  std::uint64_t never = 0;
  Sink sink{};
  sink.open(ends[0], never);
  BOOST_TEST(sink.write(bytes_of_text("text")));
  ::close(ends[1]);
  BOOST_TEST(!sink.write(bytes_of_text("text")));
  BOOST_TEST((sink.state() == Sink::State::kFailed));
  sink.close();
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error) {
  std::uint64_t never = 0;
  Sink sink{};
  sink.open(::open("/dev/full", O_WRONLY | O_CLOEXEC), never);
  BOOST_TEST(!sink.write(bytes_of_text("text")));
  BOOST_TEST(sink.error() == ENOSPC);
  sink.close();
}

BOOST_AUTO_TEST_CASE(a_descriptor_that_has_become_another_files_is_left_alone) {
  const BlockedSignals blocked;
  Pipe ours;
  Pipe other;
  Sink sink{};
  std::uint64_t deadline_ns = 0;
  sink.open(ours.write, deadline_ns);
  BOOST_TEST(sink.write(bytes_of_text("first ")));
  BOOST_REQUIRE(::dup2(other.write, ours.write) == ours.write);  // as after closefrom(3)
  BOOST_TEST(!sink.write(bytes_of_text("second")));
  BOOST_TEST((sink.state() == Sink::State::kFailed));
  BOOST_TEST(sink.error() == EBADF);
  sink.close();
  BOOST_TEST(::write(ours.write, "mine", 4) == 4);  // is open still
  ::close(ours.write);
  ::close(other.write);
  BOOST_TEST(read_all(ours.read.get()) == "first ");
  BOOST_TEST(read_all(other.read.get()) == "mine");
}

BOOST_AUTO_TEST_SUITE_END()
