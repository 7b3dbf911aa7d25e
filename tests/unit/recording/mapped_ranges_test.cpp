// SPDX-License-Identifier: MIT
#include "recording/stream/mapped_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <thread>

using pe::recording::MappedRanges;
using pe::unwind::MemoryRange;

namespace {

std::uint64_t address_of(const void* place) { return reinterpret_cast<std::uint64_t>(place); }

/// A page between two that cannot be accessed, so that the kernel joins it with nothing.
class LonePage {
 public:
  LonePage() { ::mprotect(middle(), kBytes, PROT_READ | PROT_WRITE); }
  LonePage(const LonePage&) = delete;
  LonePage& operator=(const LonePage&) = delete;
  LonePage(LonePage&&) = delete;
  LonePage& operator=(LonePage&&) = delete;
  ~LonePage() { ::munmap(base_, 3 * kBytes); }

  [[nodiscard]] std::byte* middle() const { return static_cast<std::byte*>(base_) + kBytes; }

  static constexpr std::size_t kBytes = 4096;

 private:
  void* base_ = ::mmap(nullptr, 3 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

}  // namespace

BOOST_AUTO_TEST_SUITE(mapped_ranges)

BOOST_AUTO_TEST_CASE(tells_the_mapping_of_an_address) {
  const LonePage page;
  MappedRanges ranges;
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::uint64_t start = address_of(page.middle());
  for (const std::uint64_t address : {start, start + 1, start + LonePage::kBytes - 1}) {
    const MemoryRange range = ranges.at(pid, address);
    BOOST_TEST(range.start == start);
    BOOST_TEST(range.end == start + LonePage::kBytes);
  }
  BOOST_TEST(ranges.at(pid, start + LonePage::kBytes).start == start + LonePage::kBytes);
  BOOST_TEST(ranges.at(pid, 0).end == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_newer_is_there_at_once_while_a_program_begins) {
  MappedRanges ranges;
  const auto pid = static_cast<std::uint32_t>(::getpid());
  for (int times = 0; times < 10; ++times) {
    const LonePage page;
    const std::uint64_t start = address_of(page.middle());
    BOOST_TEST(ranges.at(pid, start).start == start);
  }
}

BOOST_AUTO_TEST_CASE(what_is_newer_is_there_some_time_later_at_last) {
  MappedRanges ranges;
  const auto pid = static_cast<std::uint32_t>(::getpid());
  for (int times = 0; times < 100; ++times)
    BOOST_TEST(ranges.at(pid, 0).end == 0U);
  const LonePage page;
  const std::uint64_t start = address_of(page.middle());
  MemoryRange range;
  for (int tries = 0; range.end == 0 && tries < 1000; ++tries) {
    range = ranges.at(pid, start);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  BOOST_TEST(range.start == start);
}

BOOST_AUTO_TEST_CASE(knows_nothing_of_processes_that_are_not_there) {
  MappedRanges ranges;
  constexpr std::uint32_t kBeyondAll = 1U << 30U;
  BOOST_TEST(ranges.at(kBeyondAll, 4096).end == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
