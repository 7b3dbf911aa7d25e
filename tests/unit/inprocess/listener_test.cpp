// SPDX-License-Identifier: MIT
#include "recording/inprocess/listener.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <list>
#include <vector>

#include "recording/inprocess/runtime/shared_file.h"

using pe::Fd;
using pe::inprocess::Link;
using pe::inprocess::Listener;

BOOST_AUTO_TEST_SUITE(listener)

namespace {

void send_file(const Listener& listener) {
  const Fd file(::memfd_create("sent", MFD_CLOEXEC));
  const Link link(listener.socket_name());
  BOOST_REQUIRE(static_cast<bool>(link));
  BOOST_REQUIRE(link.send_file(file.get(), listener.key()));
}

/// How many files come.
std::size_t taken_by(Listener& listener) {
  std::size_t count = 0;
  listener.take_in([&count](pid_t /*pid*/, const Fd& /*file*/) { ++count; });
  return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_those_who_say_nothing_the_oldest_are_left) {
  Listener listener("listener-test");
  constexpr std::size_t kMore = 3;
  std::list<Link> silent;
  for (std::size_t i = 0; i < Listener::kMostSilent + kMore; ++i)
    silent.emplace_back(listener.socket_name());
  BOOST_TEST(taken_by(listener) == 0U);
  BOOST_TEST(listener.refused().at("that sent nothing") == kMore);
  send_file(listener);
  BOOST_TEST(taken_by(listener) == 1U);
  // The newest may still speak.
  const Fd file(::memfd_create("sent", MFD_CLOEXEC));
  BOOST_TEST(silent.back().send_file(file.get(), ""));
  BOOST_TEST(taken_by(listener) == 1U);
}

BOOST_AUTO_TEST_CASE(of_other_users_fewer_are_kept_and_they_keep_nobody_out) {
  if (::geteuid() != 0) {
    BOOST_TEST_MESSAGE("skipped: to become another user needs root");
    return;
  }
  Listener listener("listener-test");
  constexpr std::size_t kMore = 50;
  int told[2], end[2];
  BOOST_REQUIRE((::pipe(told) == 0 && ::pipe(end) == 0));
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    std::list<Link> silent;
    constexpr uid_t kNobody = 65534;
    if (::setuid(kNobody) != 0)
      ::_exit(1);
    for (std::size_t i = 0; i < Listener::kMostSilentStrangers + kMore; ++i)
      silent.emplace_back(listener.socket_name());
    char byte = 0;
    ::close(end[1]);
    const bool is_over = ::write(told[1], &byte, 1) == 1 && ::read(end[0], &byte, 1) == 0;
    ::_exit(is_over ? 0 : 1);
  }
  char byte = 0;
  BOOST_TEST(::read(told[0], &byte, 1) == 1);
  send_file(listener);
  BOOST_TEST(taken_by(listener) == 1U);
  BOOST_TEST(listener.refused().at("of another user that sent nothing") == kMore);
  ::close(end[1]);
  int status = 0;
  BOOST_TEST(::waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
  for (const int fd : {told[0], told[1], end[0]})
    ::close(fd);
}

BOOST_AUTO_TEST_CASE(nobody_is_taken_in_where_too_few_descriptors_would_be_left) {
  Listener listener("listener-test");
  send_file(listener);
  listener.keep_free(8);
  rlimit limit{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const Fd highest(::dup(listener.fd()));
  rlimit low = limit;
  low.rlim_cur = static_cast<rlim_t>(highest.get()) + 8;
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  const std::size_t early = taken_by(listener);
  const bool is_listening = listener.is_listening();
  listener.keep_free(2);
  const std::size_t late = taken_by(listener);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  BOOST_TEST(early == 0U);
  BOOST_TEST(!is_listening);
  BOOST_TEST(late == 1U);
  BOOST_TEST(listener.is_listening());
}

BOOST_AUTO_TEST_SUITE_END()
