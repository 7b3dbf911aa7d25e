// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/own_memory.h"

#include <sys/mman.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <vector>

namespace {

using namespace pe::inprocess;

constexpr std::size_t kPage = 4096;

/// Three pages; the last can be protected or unmapped.
class Pages {
 public:
  Pages()
      : first_(static_cast<std::byte*>(::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { ::munmap(first_, 3 * kPage); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] std::byte* page(std::size_t number) const { return first_ + number * kPage; }
  [[nodiscard]] std::uint64_t avma(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(first_) + offset;
  }

 private:
  std::byte* first_;
};

std::vector<std::byte> copied(std::uint64_t avma, std::size_t most, std::size_t first) {
  std::vector<std::byte> one(first), other(most - first);
  const auto count = copy_own_memory(avma, {one, other});
  BOOST_REQUIRE(count >= 0);
  one.insert(one.end(), other.begin(), other.end());
  one.resize(static_cast<std::size_t>(count));
  return one;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(own_memory)

BOOST_AUTO_TEST_CASE(a_copy_fills_both_parts_of_its_room) {
  BOOST_REQUIRE(can_copy_own_memory());
  const Pages pages;
  std::memset(pages.page(0), 5, kPage);
  std::memset(pages.page(1), 6, kPage);
  const auto bytes = copied(pages.avma(kPage - 10), 20, 7);
  BOOST_TEST_REQUIRE(bytes.size() == 20U);
  BOOST_TEST((bytes[9] == std::byte{5} && bytes[10] == std::byte{6}));
}

BOOST_AUTO_TEST_CASE(a_copy_ends_before_a_page_that_is_protected_or_missing) {
  const Pages pages;
  ::mprotect(pages.page(2), kPage, PROT_NONE);
  BOOST_TEST(copied(pages.avma(100), 3 * kPage, 3 * kPage).size() == 2 * kPage - 100);
  BOOST_TEST(copied(pages.avma(2 * kPage), 8, 8).empty());
  ::munmap(pages.page(2), kPage);
  BOOST_TEST(copied(pages.avma(100), 3 * kPage, 50).size() == 2 * kPage - 100);
  BOOST_TEST(copied(0, 8, 8).empty());
  BOOST_TEST(copied(~std::uint64_t{0} - 7, 8, 8).empty());
}

BOOST_AUTO_TEST_CASE(pages_that_were_never_touched_are_not_resident) {
  const Pages pages;
  std::memset(pages.page(0), 1, 2 * kPage);
  BOOST_TEST(resident_bytes(pages.avma(100), 3 * kPage - 100) == 2 * kPage - 100);
  BOOST_TEST(resident_bytes(pages.avma(100), 50) == 50U);
  BOOST_TEST(resident_bytes(pages.avma(2 * kPage), 50) == 0U);
  std::memset(pages.page(2), 1, kPage);
  BOOST_TEST(resident_bytes(pages.avma(0), 3 * kPage) == 3 * kPage);
  ::munmap(pages.page(2), kPage);
  BOOST_TEST(resident_bytes(pages.avma(1), 3 * kPage) == 2 * kPage - 1);
  BOOST_TEST(resident_bytes(0, 8) == 0U);
  BOOST_TEST(resident_bytes(~std::uint64_t{0} - 7, 8) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
