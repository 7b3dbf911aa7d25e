// SPDX-License-Identifier: MIT
#include "malloctrace/heap_stream.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace pe;
using malloctrace::Fate;
using malloctrace::Summary;

heap::Heap heap_with(std::uint64_t peak_bytes) {
  heap::Heap heap;
  heap.peak_bytes = peak_bytes;
  heap.file_bytes = 500;
  heap.sites.resize(1);
  heap.sites[0].sums = {.allocated_bytes = 3000,
                        .allocated_count = 3,
                        .live_bytes = 1,
                        .live_count = 1,
                        .peak_bytes = peak_bytes,
                        .temporary_count = 2};
  return heap;
}

/// The doubts and then the details that `add` adds.
std::vector<std::string> lines_of(const Summary& summary, void (*add)(const Summary&, Closing&)) {
  Closing closing;
  add(summary, closing);
  std::vector<std::string> lines = closing.doubts;
  lines.insert(lines.end(), closing.details.begin(), closing.details.end());
  return lines;
}

std::vector<std::string> losses_of(const Summary& summary) {
  return lines_of(summary, malloctrace::add_losses);
}

std::string resident_of(const Summary& summary) {
  const auto lines = lines_of(summary, malloctrace::add_resident);
  return lines.empty() ? "" : lines.at(0);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(summary_of_heaps)

BOOST_AUTO_TEST_CASE(a_program_is_told_in_one_line) {
  Summary summary;
  const heap::Heap heap = heap_with(2000);
  summary.add({1, Fate::kEnded, heap});
  BOOST_TEST(describe_use(summary, "2.50 s") ==
             "3 allocations in 2.50 s, 3000 bytes, peak 2000 bytes, 1 byte in 1 block not freed");
  BOOST_TEST(describe_processes(summary) == "1 process");
  BOOST_TEST(describe_memory(summary) == "tracing took 500 bytes of memory");
  BOOST_TEST(losses_of(summary).empty());
}

BOOST_AUTO_TEST_CASE(what_tracing_took_is_a_share_of_what_is_not_little) {
  Summary summary;
  summary.add({1, Fate::kEnded, heap_with(1 << 20)});
  BOOST_TEST(describe_memory(summary) == "tracing took 500 bytes of memory, 0.0 % of the peak");
}

BOOST_AUTO_TEST_CASE(the_peak_of_threads_has_a_bound_and_estimates_say_so) {
  Summary summary;
  heap::Heap heap = heap_with(2000);
  heap.header.has_threads = 1;
  heap.header.slack_bytes = 64;
  summary.add({1, Fate::kEnded, heap});
  BOOST_TEST(describe_use(summary, "1 s")
                 .starts_with("3 allocations in 1 s, 3000 bytes, peak 2000 bytes "
                              "within 64, "));
  heap.header.sample_bytes = 500;
  Summary estimated;
  estimated.add({1, Fate::kEnded, heap});
  BOOST_TEST(
      describe_use(estimated, "1 s")
          .starts_with(
              "about 0 allocations in 1 s, 3000 bytes, peak 2000 bytes too high by up to 1720, "));
}

BOOST_AUTO_TEST_CASE(programs_of_one_process_are_one_process) {
  Summary summary;
  const heap::Heap shell = heap_with(10), program = heap_with(90);
  summary.add({1, Fate::kBeganAnother, shell});
  summary.add({1, Fate::kEnded, program});
  BOOST_TEST(describe_use(summary, "1 s") ==
             "6 allocations in 1 s, 6000 bytes, peak 90 bytes in one program, 2 bytes in 2 blocks "
             "not freed");
  BOOST_TEST(describe_processes(summary) == "1 process (2 programs)");
  BOOST_TEST(describe_memory(summary) == "tracing took 1000 bytes of memory");
}

BOOST_AUTO_TEST_CASE(what_was_resident_is_told_where_malloc_saw_little_of_it) {
  heap::Heap heap = heap_with(1'000'000);
  heap.header.resident_peak_bytes = 10'000'000;
  Summary small;
  small.add({1, Fate::kEnded, heap});
  BOOST_TEST(resident_of(small) == "");
  heap.header.resident_peak_bytes = 40'000'000;
  heap.header.mapped_peak_bytes = 30'000'000;
  Summary summary;
  summary.add({1, Fate::kEnded, heap});
  const std::string told =
      "resident set at most 40000000 bytes, of which malloc's peak is 2.5 %; 30000000 bytes (75.0 "
      "%) were mapped outside malloc";
  BOOST_TEST(resident_of(summary) == told + ": --mmap shows where");
  constexpr std::string_view kPython = "/usr/bin/python3.11";
  heap::Module& module = heap.modules.emplace_back();
  std::copy(kPython.begin(), kPython.end(), module.path);
  module.path_length = kPython.size();
  Summary python;
  python.add({1, Fate::kEnded, heap});
  BOOST_TEST(resident_of(python) ==
             told + "; Python has its own allocator: run it with PYTHONMALLOC=malloc");
  heap.header.mapped_peak_bytes = 90'000'000;
  heap.modules.clear();
  Summary reserved;
  reserved.add({1, Fate::kEnded, heap});
  BOOST_TEST(resident_of(reserved).find("; 90000000 bytes were mapped") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(losses_are_told) {
  Summary summary;
  heap::Heap heap = heap_with(1);
  heap.damaged = 1;
  heap.header.failed = 1;
  heap.header.early = 2;
  heap.header.dropped = 3;
  heap.header.full = 3;
  heap.header.unknown_frees = 4;
  heap.header.inherited_frees = 5;
  heap.header.cut_stacks = 6;
  heap.header.incomplete_stacks = 7;
  summary.add({1, Fate::kRuns, heap});
  summary.refused["of another user"] = 2;
  const std::vector<std::string> wanted{
      "2 allocations not counted, because tracing had not started: see CAVEATS in malloctrace(1)",
      "3 allocations not counted: use --sample",
      "3 allocations of these had no room: use --sample",
      "4 frees of unknown blocks: see CAVEATS in malloctrace(1)",
      "6 stacks cut: raise --max-depth",
      "7 stacks not walked to the end: see HOW STACKS END in pe-record(1)",
      "1 number inconsistent in shared memory: check whether the program overwrites memory",
      "2 connections of another user refused: see CAVEATS in malloctrace(1)",
      "1 allocation failed",
      "5 frees of blocks from before a fork"};
  BOOST_TEST(losses_of(summary) == wanted, boost::test_tools::per_element());
  BOOST_TEST(summary.running == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
