// SPDX-License-Identifier: MIT
#include "stream/proc/maps.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <thread>

using pe::stream::parse_maps_line;

BOOST_AUTO_TEST_SUITE(maps)

BOOST_AUTO_TEST_CASE(reads_a_file_mapping) {
  const auto map = parse_maps_line(
      "7f1c2c000000-7f1c2c021000 r-xp 00026000 fe:01 131 /usr/lib/a file with  blanks (deleted)");
  BOOST_REQUIRE(map.has_value());
  BOOST_TEST(map->start == 0x7f1c2c000000u);
  BOOST_TEST(map->end == 0x7f1c2c021000u);
  BOOST_TEST(map->file_offset == 0x26000u);
  BOOST_TEST(map->device_major == 0xfeu);
  BOOST_TEST(map->device_minor == 1u);
  BOOST_TEST(map->inode == 131u);
  BOOST_TEST(map->executable);
  BOOST_TEST(map->readable);
  BOOST_TEST(!map->writable);
  BOOST_TEST(!map->shared);
  BOOST_TEST(map->path == "/usr/lib/a file with  blanks (deleted)");
}

BOOST_AUTO_TEST_CASE(reads_an_anonymous_mapping) {
  const auto map = parse_maps_line("00400000-00401000 rw-s 00000000 00:00 0 ");
  BOOST_REQUIRE(map.has_value());
  BOOST_TEST(map->path == "");
  BOOST_TEST(map->shared);
  BOOST_TEST(parse_maps_line("00400000-00401000 rw-s 00000000 00:00 0").has_value());
}

BOOST_AUTO_TEST_CASE(refuses_lines_of_another_form) {
  for (const char* line :
       {"", "x", "400000-401000", "400000-401000 r-xp 0 0:0 ", "401000-400000 r-xp 0 0:0 0 /x",
        "400000-401000 r-x 0 0:0 0", "400000-401000 r-xp zz 0:0 0 /x", "-400000 r-xp 0 0:0 0",
        "11112222333344445-2 r-xp 0 0:0 0 /x"})
    BOOST_TEST(!parse_maps_line(line).has_value(), "accepted '" << line << "'");
}

BOOST_AUTO_TEST_CASE(finds_this_very_program) {
  const auto address = reinterpret_cast<std::uint64_t>(&parse_maps_line);
  bool found = false;
  BOOST_TEST(pe::stream::for_each_mapping(::getpid(), [&](const pe::stream::MapsLine& map) {
    found = found || (map.executable && map.start <= address && address < map.end);
  }));
  BOOST_TEST(found);
  const auto threads = pe::stream::threads_of(::getpid());
  BOOST_TEST((std::find(threads.begin(), threads.end(), ::getpid()) != threads.end()));
  const auto status = pe::stream::status_of(::getpid());
  BOOST_REQUIRE(status.has_value());
  BOOST_TEST(status->pid == ::getpid());
  BOOST_TEST(status->parent_pid == ::getppid());
  BOOST_TEST(status->effective_uid == ::geteuid());
  BOOST_TEST(status->state == 'R');
  BOOST_TEST(status->pid_in_namespace == ::getpid());
}

BOOST_AUTO_TEST_CASE(a_process_whose_first_thread_has_ended_is_still_mapped) {
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    std::thread(::pause).detach();
    ::syscall(SYS_exit, 0);  // ends this thread only
  }
  while (pe::stream::status_of(child).value().state != 'Z')
    std::this_thread::yield();
  const auto address = reinterpret_cast<std::uint64_t>(&parse_maps_line);
  bool found = false;
  BOOST_TEST(pe::stream::for_each_mapping(child, [&](const pe::stream::MapsLine& map) {
    found = found || (map.start <= address && address < map.end);
  }));
  BOOST_TEST(found);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

BOOST_AUTO_TEST_CASE(children_are_known_until_they_are_waited_for) {
  const pid_t first = ::fork();
  if (first == 0)
    ::_exit(0);
  const pid_t second = ::fork();
  if (second == 0)
    ::_exit(0);
  const auto children = pe::stream::children_of(::getpid());
  BOOST_TEST(std::count(children.begin(), children.end(), first) == 1);
  BOOST_TEST(std::count(children.begin(), children.end(), second) == 1);
  ::waitpid(first, nullptr, 0);
  ::waitpid(second, nullptr, 0);
  BOOST_TEST(pe::stream::children_of(::getpid()).empty());
}

BOOST_AUTO_TEST_CASE(a_process_that_is_gone_is_no_error) {
  BOOST_TEST(!pe::stream::for_each_mapping(0x7ffffffe, [](const auto&) {}));
  BOOST_TEST(pe::stream::threads_of(0x7ffffffe).empty());
  BOOST_TEST(pe::stream::children_of(0x7ffffffe).empty());
  BOOST_TEST(!pe::stream::status_of(0x7ffffffe).has_value());
}

BOOST_AUTO_TEST_CASE(a_number_that_is_no_process_names_none) {
  const auto status = pe::stream::parse_thread_status("Name:\ta\nTgid:\t12\nPPid:\t4294967295\n");
  BOOST_TEST(status.value().pid == 12);
  BOOST_TEST(status.value().parent_pid == 0);
  BOOST_TEST(!pe::stream::parse_thread_status("Name:\ta\nTgid:\t2147483648\n").has_value());
}

BOOST_AUTO_TEST_CASE(sets_of_a_status_are_not_taken_from_a_threads_name) {
  const auto status = pe::stream::parse_thread_status(
      "Name:\tSigBlk:\t1\nTgid:\t12\nSigPnd:\t0000000004000000\nSigBlk:\tffffffffffffffff\n"
      "CapEff:\t1ffffffffffffffff\n");
  BOOST_TEST(status.value().pending_signals == std::uint64_t{1} << 26U);
  BOOST_TEST(status.value().blocked_signals == ~std::uint64_t{0});
  BOOST_TEST(status.value().effective_capabilities == 0U);  // the number is too large for a set
}

BOOST_AUTO_TEST_SUITE_END()
