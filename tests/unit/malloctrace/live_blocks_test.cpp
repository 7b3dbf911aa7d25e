// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/shadow_map.h"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "shared_room.h"

BOOST_AUTO_TEST_SUITE(live_blocks)

namespace {

using namespace pe::malloctrace;
using pe::testing::Zeroed;

void* address(std::uint64_t avma) {
  return reinterpret_cast<void*>(avma);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_table_knows_what_was_put_in_and_not_taken_out) {
  const Zeroed<LiveBlocks> live;
  BOOST_REQUIRE(live->start(false));
  std::mt19937_64 random(3);
  std::map<std::uint64_t, Block> model;
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t avma = 0x7f0000000000 + random() % 5000 * 48;
    if (random() % 2 == 0) {
      const Block block{static_cast<std::uint32_t>(random() % (1U << 26)) | 1,
                        random() >> (10 + random() % 54)};
      BOOST_REQUIRE(live->insert(address(avma), block));
      model[avma] = block;
    } else {
      const Block got = live->take(address(avma));
      const Block wanted = model.contains(avma) ? model[avma] : Block{};
      BOOST_REQUIRE(got.site == wanted.site);
      BOOST_REQUIRE(got.bytes == wanted.bytes);
      model.erase(avma);
    }
  }
  for (const auto& [avma, block] : model)
    BOOST_REQUIRE(live->take(address(avma)).bytes == block.bytes);
}

// Where another allocator is in the place of glibc's (a sanitizer's), its blocks have no such
// header.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
BOOST_AUTO_TEST_CASE(a_shadow_knows_the_sizes_that_were_asked_for) {
  const Zeroed<LiveBlocks> live;
  BOOST_REQUIRE(live->start(true));
  BOOST_TEST(live->private_bytes() == 0U);
  std::mt19937 random(4);
  struct Held {
    void* memory;
    Block block;
  };
  std::vector<Held> held;
  for (int i = 0; i < 50000; ++i) {
    if (held.size() < 300 || random() % 2 == 0) {
      const std::size_t bytes = random() % 64 == 0 ? random() % 400000 : random() % 300;
      void* memory = nullptr;
      if (random() % 8 == 0)
        BOOST_REQUIRE(::posix_memalign(&memory, 16UL << random() % 9, bytes) == 0);
      else
        memory = std::malloc(bytes);
      held.push_back({memory, {static_cast<std::uint32_t>(random() % 1000 + 1), bytes}});
      BOOST_REQUIRE(live->insert(memory, held.back().block));
    } else {
      std::swap(held[random() % held.size()], held.back());
      for (const std::size_t inside : {1UL, 8UL, 16UL, 24UL, 32UL})
        BOOST_REQUIRE(inside > held.back().block.bytes ||
                      live->take(static_cast<std::byte*>(held.back().memory) + inside).site == 0U);
      const Block got = live->take(held.back().memory);
      BOOST_REQUIRE(got.site == held.back().block.site);
      BOOST_REQUIRE(got.bytes == held.back().block.bytes);
      BOOST_REQUIRE(live->take(held.back().memory).site == 0U);
      std::free(held.back().memory);
      held.pop_back();
    }
  }
  BOOST_TEST(live->private_bytes() > 4096U);
  BOOST_TEST(live->private_bytes() < std::uint64_t{8} << 20);
  for (const Held& one : held)
    std::free(one.memory);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
