// SPDX-License-Identifier: MIT
#include "recording/target_options.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <string>

#include "base/error.h"

BOOST_AUTO_TEST_SUITE(target_options)

BOOST_AUTO_TEST_CASE(cpu_lists_are_as_the_kernel_writes_them) {
  using pe::recording::parse_cpu_list;
  BOOST_TEST(parse_cpu_list("0").value() == std::vector<int>{0});
  BOOST_TEST(parse_cpu_list("0-2,8").value() == (std::vector<int>{0, 1, 2, 8}));
  for (const char* text : {"", ",", "1,", "a", "1-", "-1", "2-1", "99999999"})
    BOOST_TEST(!parse_cpu_list(text).has_value(), "accepted '" << text << "'");
}

BOOST_AUTO_TEST_CASE(a_target_that_is_named_twice_is_recorded_once) {
  pe::recording::Target target{.processes = {4194303, 4194302, 4194303},
                               .threads = {4194301, 4194301}};
  pe::recording::tidy(target);
  BOOST_TEST(target.processes == (std::vector<pid_t>{4194302, 4194303}));
  BOOST_TEST(target.threads == std::vector<pid_t>{4194301});
}

BOOST_AUTO_TEST_CASE(only_processes_that_nobody_named_may_end_before_they_are_opened) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  pe::recording::Target target{.processes = {::getpid()}, .with_children = true};
  pe::recording::tidy(target);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  BOOST_TEST(target.processes.size() == 2U);
  BOOST_TEST(target.may_end(child));
  BOOST_TEST(!target.may_end(::getpid()));
}

BOOST_AUTO_TEST_CASE(a_name_that_no_process_has_is_refused) {
  pe::recording::Target target{.names = {"no such program"}};
  BOOST_CHECK_EXCEPTION(pe::recording::tidy(target), pe::Error, [](const pe::Error& error) {
    return std::string(error.what()) == "--pid: no process is named 'no such program'";
  });
}

BOOST_AUTO_TEST_SUITE_END()
