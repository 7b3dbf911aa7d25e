// SPDX-License-Identifier: MIT
#include "recording/waits/passed_switches.h"

#include <boost/test/unit_test.hpp>

#include "stream/stream_writer.h"

using namespace pe;
using waits::OwnProcesses;

BOOST_AUTO_TEST_SUITE(own_processes)

namespace {

stream::Record finish(stream::RecordBuilder& builder) {
  return stream::view_record(std::as_bytes(std::span(builder.finish())));
}

/// Asks about records of processes.
struct Asked {
  explicit Asked(const recording::Target& target) : own(target) {}

  bool fork(std::uint32_t parent, std::uint32_t child) {
    return task(PERF_RECORD_FORK, child, parent);
  }
  bool exit(std::uint32_t pid) { return task(PERF_RECORD_EXIT, pid, pid); }
  bool task(std::uint32_t type, std::uint32_t pid, std::uint32_t parent) {
    builder.begin(type).add(pid).add(parent).add(pid).add(parent).add(std::uint64_t{0});
    return own.has(finish(builder));
  }
  bool comm(std::uint32_t pid) {
    builder.begin(PERF_RECORD_COMM).add(pid).add(pid).add_string("name").pad();
    return own.has(finish(builder));
  }
  bool map(std::uint32_t pid) {
    constexpr std::uint64_t kStart = 0x1000, kBytes = 0x1000, kOffset = 0;
    builder.begin(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER).add(pid).add(pid);
    builder.add(kStart).add(kBytes).add(kOffset).add_string("/bin/x").pad();
    return own.has(finish(builder));
  }

  OwnProcesses own;
  stream::RecordBuilder builder;
};

}  // namespace

BOOST_AUTO_TEST_CASE(others_are_left_out) {
  Asked asked({.processes = {7}});
  BOOST_TEST(asked.comm(7));
  BOOST_TEST(asked.map(7));
  BOOST_TEST(asked.exit(7));
  BOOST_TEST(!asked.comm(8));
  BOOST_TEST(!asked.map(8));
  BOOST_TEST(!asked.exit(8));
}

BOOST_AUTO_TEST_CASE(children_and_their_children_are_followed) {
  Asked asked({.processes = {7}});
  BOOST_TEST(!asked.map(8));
  BOOST_TEST(asked.fork(7, 8));
  BOOST_TEST(asked.map(8));
  BOOST_TEST(asked.exit(7));
  BOOST_TEST(asked.fork(8, 9));
  BOOST_TEST(asked.comm(9));
  BOOST_TEST(asked.fork(7, 7));  // a thread
  BOOST_TEST(asked.map(7));
}

BOOST_AUTO_TEST_CASE(a_number_that_another_process_gets_is_another_process) {
  Asked asked({.processes = {7}});
  BOOST_TEST(asked.exit(7));
  BOOST_TEST(!asked.fork(1, 7));
  BOOST_TEST(!asked.map(7));
  BOOST_TEST(!asked.fork(7, 8));
}

BOOST_AUTO_TEST_CASE(the_kernels_code_is_not_left_out) {
  Asked asked({.processes = {7}});
  BOOST_TEST(asked.map(stream::kKernelPid));
}

BOOST_AUTO_TEST_CASE(everything_is_everything) {
  Asked asked({.is_everything = true});
  BOOST_TEST(asked.map(7));
  BOOST_TEST(asked.fork(1, 7));
}

BOOST_AUTO_TEST_CASE(losses_are_not_left_out) {
  Asked asked({.processes = {7}});
  asked.builder.begin(PERF_RECORD_LOST).add(std::uint64_t{1}).add(std::uint64_t{2});
  BOOST_TEST(asked.own.has(finish(asked.builder)));
}

BOOST_AUTO_TEST_SUITE_END()
