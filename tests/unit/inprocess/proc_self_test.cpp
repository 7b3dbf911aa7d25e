// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/proc_self.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <variant>

#include "objects/image.h"
#include "recording/sigprof/mappings.h"

namespace {

using namespace pe;

std::set<pid_t> tasks() {
  std::set<pid_t> all;
  inprocess::TaskFolder folder;
  while (const pid_t tid = folder.next())
    all.insert(tid);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sigprof_proc_self)

BOOST_AUTO_TEST_CASE(filters_are_counted_or_only_known_to_be_there) {
  using inprocess::filters_in;
  BOOST_TEST(filters_in("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\nx:\t4\n") == 3U);
  BOOST_TEST(filters_in("Seccomp:\t2\n") == 2U);
  BOOST_TEST(filters_in("Seccomp:\tx\n") == 0U);
  BOOST_TEST(filters_in("") == 0U);
}

BOOST_AUTO_TEST_CASE(the_signals_that_a_thread_blocks_are_read_from_its_status) {
  using inprocess::reports_blocked_sigprof;
  // SIGPROF is 27: bit 26.
  BOOST_TEST(reports_blocked_sigprof("Name:\tx\nSigBlk:\t0000000004000000\nSigIgn:\t0\n"));
  BOOST_TEST(!reports_blocked_sigprof("SigBlk:\tfffffffffbffffff\nSigIgn:\t04000000\n"));
  BOOST_TEST(!reports_blocked_sigprof("SigBlk:\t"));
  BOOST_TEST(!reports_blocked_sigprof("SigBlk:\tnothing that is a num"));
  BOOST_TEST(!reports_blocked_sigprof(""));
}

BOOST_AUTO_TEST_CASE(the_most_resident_memory_is_read_from_the_status) {
  using inprocess::resident_peak_bytes;
  BOOST_TEST(resident_peak_bytes("VmPeak:\t    9000 kB\nVmHWM:\t    1500 kB\n") == 1500U * 1024);
  BOOST_TEST(resident_peak_bytes("VmHWM:\t") == 0U);
  BOOST_TEST(resident_peak_bytes("VmHWM:\t-3 kB\n") == 0U);
  BOOST_TEST(resident_peak_bytes("") == 0U);
}

BOOST_AUTO_TEST_CASE(the_size_of_all_that_is_mapped_is_the_first_number) {
  BOOST_TEST(inprocess::mapped_pages("123 45 6 7 0 8 0\n") == 123U);
  BOOST_TEST(inprocess::mapped_pages("") == 0U);
  BOOST_TEST(inprocess::mapped_pages("-1 5") == 0U);
}

BOOST_AUTO_TEST_CASE(files_are_read_as_far_as_there_is_room) {
  std::array<char, 3> few{};
  BOOST_TEST(inprocess::read_proc("/proc/self/statm", few).size() == 3U);
  std::array<char, 64> room{};
  BOOST_TEST(inprocess::read_proc("/proc/self/no-such-file", room) == "");
  ::pthread_setname_np(::pthread_self(), "a name");
  BOOST_TEST(inprocess::read_of_thread(inprocess::own_tid(), "comm", room) == "a name\n");
}

BOOST_AUTO_TEST_CASE(threads_are_found) {
  const pid_t first = inprocess::own_tid();
  BOOST_TEST(tasks().contains(first));
  pid_t other = 0;
  std::set<pid_t> seen;
  std::thread([&] {
    other = inprocess::own_tid();
    seen = tasks();
  }).join();
  BOOST_TEST(seen.contains(first));
  BOOST_TEST(seen.contains(other));
}

BOOST_AUTO_TEST_CASE(build_ids_in_memory_are_those_of_the_files) {
  const auto modules = std::make_unique<inprocess::ModuleList>();
  modules->read();
  BOOST_TEST(modules->size() > 2U);
  const auto opened = objects::Image::open("/proc/self/exe");
  const auto* image = std::get_if<objects::Image>(&opened);
  BOOST_REQUIRE(image != nullptr);
  const auto here = reinterpret_cast<std::uint64_t>(&tasks);
  const Bytes found = modules->build_id_at(here);
  const Bytes wanted = image->build_id();
  BOOST_TEST(std::equal(found.begin(), found.end(), wanted.begin(), wanted.end()));
  BOOST_TEST(modules->build_id_at(1).empty());
}

BOOST_AUTO_TEST_SUITE_END()
