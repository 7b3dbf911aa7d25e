// SPDX-License-Identifier: MIT
#include "recording/waits/wait_writer.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "stream/records/event.h"
#include "unwind/walk/frame.h"

using pe::unwind::Frame;
using pe::unwind::FrameSource;
using pe::waits::ChainWriter;

BOOST_AUTO_TEST_SUITE(chain_writer)

namespace {

using Addresses = std::vector<std::uint64_t>;

std::uint64_t bits(std::uint64_t avma, bool is_exact) {
  return std::bit_cast<std::uint64_t>(Frame(avma, FrameSource::kCfi, is_exact));
}

/// The address of a kernel function; 0 if the kernel hides it.
std::uint64_t kernel_address(const std::string& name) {
  std::ifstream in("/proc/kallsyms");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string type, found;
    std::uint64_t avma = 0;
    if (words >> std::hex >> avma >> type >> found && found == name)
      return avma;
  }
  return 0;
}

Addresses kernel_part(ChainWriter& writer, const Addresses& frames) {
  Addresses chain{99};
  writer.add_kernel_part({.frames = frames, .is_kernel = true}, chain);
  return chain;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_s_frames_stand_behind_their_mark) {
  const Addresses frames{bits(0x1000, true), bits(0x2000, false)};
  Addresses chain{99};
  ChainWriter::add_user_part({.frames = frames}, chain);
  const Addresses wanted{99, PERF_CONTEXT_USER, 0x1000, 0x2000};
  BOOST_TEST(chain == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_a_signal_interrupted_counts_as_a_return_address) {
  const Addresses frames{bits(0x1000, true), bits(0x2000, true), bits(0x3000, false)};
  Addresses chain;
  ChainWriter::add_user_part({.frames = frames}, chain);
  const Addresses wanted{PERF_CONTEXT_USER, 0x1000, 0x2001, 0x3000};
  BOOST_TEST(chain == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(without_frames_there_is_no_mark) {
  Addresses chain;
  ChainWriter::add_user_part({}, chain);
  ChainWriter writer;
  writer.add_kernel_part({.frames = {}, .is_kernel = true}, chain);
  const Addresses frames{0x1000};
  writer.add_kernel_part({.frames = frames, .is_kernel = false}, chain);
  BOOST_TEST(chain.empty());
}

BOOST_AUTO_TEST_CASE(a_kernel_stack_without_the_scheduler_stays_whole) {
  ChainWriter writer;
  const Addresses frames{0x1000, 0x2000};
  const Addresses wanted{99, PERF_CONTEXT_KERNEL, 0x1000, 0x2000};
  BOOST_TEST(kernel_part(writer, frames) == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_kernel_stack_begins_with_the_caller_of_the_scheduler) {
  const std::uint64_t scheduler = kernel_address("__schedule");
  if (scheduler == 0) {
    BOOST_TEST_MESSAGE("skipped: /proc/kallsyms does not tell addresses");
    return;
  }
  ChainWriter writer;
  // A return address whose call includes the first byte of the function.
  const std::uint64_t inside = scheduler + 1;
  const Addresses wanted{99, PERF_CONTEXT_KERNEL, 0x3000, 0x4000};
  for (int i = 0; i < 2; ++i)  // the writer remembers the address the second time
    BOOST_TEST(kernel_part(writer, {0x1000, inside, 0x3000, 0x4000}) == wanted,
               boost::test_tools::per_element());
  BOOST_TEST(kernel_part(writer, {inside, 0x3000, 0x4000}) == wanted,
             boost::test_tools::per_element());
  BOOST_TEST(kernel_part(writer, {0x1000, inside}) == Addresses{99},
             boost::test_tools::per_element());
  // This return address belongs to the function before.
  BOOST_TEST(kernel_part(writer, {0x1000, scheduler, 0x3000}).size() == 5u);
}

BOOST_AUTO_TEST_CASE(a_scheduler_further_out_is_not_what_tracing_was_entered_from) {
  const std::uint64_t scheduler = kernel_address("__schedule");
  if (scheduler == 0)
    return;
  ChainWriter writer;
  Addresses frames{1, 2, 3, 4, 5, 6, 7, scheduler + 1, 9};
  const Addresses wanted{99, PERF_CONTEXT_KERNEL, 9};
  BOOST_TEST(kernel_part(writer, frames) == wanted, boost::test_tools::per_element());
  frames.insert(frames.begin(), 10);
  BOOST_TEST(kernel_part(writer, frames).size() == frames.size() + 2);
}

BOOST_AUTO_TEST_SUITE_END()
