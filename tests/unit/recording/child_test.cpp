// The command that a recorder starts: its standard error, and what it inherits.
// SPDX-License-Identifier: MIT
#include "recording/child.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "support/temp_dir.h"

using pe::Child;
using pe::SignalState;
using pe::testing::TempDir;

BOOST_AUTO_TEST_SUITE(child)

BOOST_AUTO_TEST_CASE(the_caller_names_the_standard_error_of_the_command) {
  const TempDir dir;
  const std::string path = dir.file("stderr", "");
  const int fd = ::open(path.c_str(), O_WRONLY);
  BOOST_REQUIRE(fd > STDERR_FILENO);
  ::setenv("STACKPIPE_STDERR", std::to_string(fd).c_str(), 1);
  // It inherits neither the variable nor the descriptor under its old number.
  const std::string script =
      "echo told >&2; [ -z \"${STACKPIPE_STDERR+set}\" ] && [ ! -e /proc/$$/fd/" +
      std::to_string(fd) + " ]";
  Child child = Child::start({"sh", "-c", script}, -1, SignalState::now());
  ::unsetenv("STACKPIPE_STDERR");
  child.go();
  std::optional<int> status;
  while (!(status = child.poll_status()))
    ::usleep(1000);
  ::close(fd);
  BOOST_TEST(*status == 0);
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  BOOST_TEST(line == "told");
}

BOOST_AUTO_TEST_SUITE_END()
