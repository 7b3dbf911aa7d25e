// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_writer.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "shared_room.h"
#include "support/costly.h"

using pe::malloctrace::StackPath;
using pe::malloctrace::StackWriter;
using pe::testing::SharedRoom;
using pe::testing::Zeroed;

BOOST_AUTO_TEST_SUITE(stack_writer)

namespace {

using Stack = std::vector<std::uint32_t>;

std::uint32_t add(StackWriter& writer, StackPath& last, const Stack& stack,
                  std::uint32_t slot = 0) {
  return writer.add(last, slot, static_cast<std::uint32_t>(stack.size()),
                    [&stack](std::uint32_t i) { return stack[i]; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_reader_finds_each_stack_of_many, *pe::tests::costly()) {
  constexpr std::uint32_t kThreads = 3;
  const SharedRoom room;
  const Zeroed<StackWriter> writer;
  const Zeroed<std::array<StackPath, kThreads>> paths;
  BOOST_REQUIRE(writer->start(room.memory()));
  room.memory().header().codes = 1000;
  std::mt19937 random(1);
  std::vector<Stack> added;
  for (int i = 0; i < 20000; ++i) {
    Stack stack(random() % 64 == 0 ? random() % 5000 + 1 : random() % 12 + 1);
    for (std::uint32_t& code : stack)
      code = random() % 8 == 0 ? random() % 1000 + 1 : random() % 5 + 1;
    const std::uint32_t slot = random() % 4 == 0 ? random() % kThreads : 0;
    if (random() % 50 == 0) {  // another thread takes the slot
      (*paths)[slot].stop();
      (*paths)[slot] = {};
    }
    BOOST_REQUIRE(add(*writer, (*paths)[slot], stack, slot) == i + 1U);
    added.push_back(stack);
  }
  BOOST_TEST(room.memory().header().sites == added.size());
  const auto stacks = room.stacks();
  BOOST_TEST(stacks.size() == added.size());
  for (std::uint32_t i = 0; i < added.size(); ++i)
    BOOST_REQUIRE(stacks.at(i + 1) == added[i]);
}

BOOST_AUTO_TEST_CASE(an_expected_frame_takes_a_bit) {
  const SharedRoom room;
  const Zeroed<StackWriter> writer;
  const Zeroed<StackPath> path;
  BOOST_REQUIRE(writer->start(room.memory()));
  room.memory().header().codes = 9;
  const auto size = [&] { return room.memory().header().stack_bytes; };
  add(*writer, *path, {1, 2, 3, 4, 5, 6, 7, 8});
  BOOST_TEST(size() == 5U + 1 + 1 + 8);  // all dropped, eight added, their bits and codes
  add(*writer, *path, {9});
  const std::uint32_t before = size();
  add(*writer, *path, {9, 1, 2, 3, 4, 5, 6, 7, 8});
  BOOST_TEST(size() - before == 1U + 1 + 1 + 1);  // only the first was not expected
  BOOST_TEST((room.stacks().at(3) == Stack{9, 1, 2, 3, 4, 5, 6, 7, 8}));
}

BOOST_AUTO_TEST_SUITE_END()
