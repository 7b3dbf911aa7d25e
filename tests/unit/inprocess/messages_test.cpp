// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/shared_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <string>

#include "base/fd.h"

BOOST_AUTO_TEST_SUITE(messages)

namespace {

/// What is written to standard error meanwhile.
template <typename Write>
std::string said_by(Write write) {
  int ends[2];
  BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  const pe::Fd reader(ends[0]), writer(ends[1]);
  const pe::Fd before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  ::dup2(writer.get(), STDERR_FILENO);
  pe::inprocess::note_standard_error();
  write();
  pe::inprocess::be_silent();
  ::dup2(before.get(), STDERR_FILENO);
  std::array<char, 1024> text{};
  const ssize_t n = ::read(reader.get(), text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(n > 0 ? n : 0)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_error_is_told_in_words) {
  const std::string process = "tool: process " + std::to_string(::getpid());
  BOOST_TEST(said_by([] { pe::inprocess::report_line("tool", "is lost", ETOOMANYREFS); }) ==
             process + " is lost (Too many references: cannot splice)\n");
  BOOST_TEST(said_by([] { pe::inprocess::report_line("tool", "is lost", 4095); }) ==
             process + " is lost (unknown error)\n");
  BOOST_TEST(said_by([] { pe::inprocess::report_line("tool", "is lost"); }) ==
             process + " is lost\n");
}

BOOST_AUTO_TEST_SUITE_END()
