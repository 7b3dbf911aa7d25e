// SPDX-License-Identifier: MIT
#include "unwind/stacks/stack_memory.h"

#include <boost/test/unit_test.hpp>
#include <vector>

using namespace pe;
using unwind::Frame;
using unwind::KnownStack;
using unwind::StackMemory;

BOOST_AUTO_TEST_SUITE(stack_memory)

namespace {

constexpr std::uint64_t kStart = 0x7000;

/// Frames of four words each; frame i has the address 0x100 + i unless a test changes it.
struct MadeStack {
  explicit MadeStack(std::size_t count) : words(4 * count, 0x11) {
    for (std::size_t i = 0; i < count; ++i) {
      frames.emplace_back(0x100 + i);
      stack_pointers.push_back(kStart + 32 * i);
    }
  }
  [[nodiscard]] KnownStack first(std::size_t count) const {
    return {std::span(frames).first(count), std::span(stack_pointers).first(count)};
  }
  [[nodiscard]] KnownStack all() const { return first(frames.size()); }
  [[nodiscard]] unwind::StackView view() const { return {kStart, std::as_bytes(std::span(words))}; }

  std::vector<Frame> frames;
  std::vector<std::uint64_t> stack_pointers;
  std::vector<std::uint64_t> words;
};

std::vector<std::uint64_t> callers(const StackMemory& memory, const MadeStack& stack,
                                   std::size_t known) {
  std::vector<Frame> out(100);
  out.resize(memory.callers(stack.first(known), stack.view(), out));
  std::vector<std::uint64_t> addresses;
  for (const Frame frame : out)
    addresses.push_back(frame.address());
  return addresses;
}

const std::vector<std::uint64_t> kNone;

}  // namespace

BOOST_AUTO_TEST_CASE(the_callers_of_a_frame_are_those_of_the_last_time) {
  StackMemory memory;
  const MadeStack stack(6);
  BOOST_TEST(callers(memory, stack, 3) == kNone);
  memory.learn(stack.all(), 6, stack.view());
  const std::vector<std::uint64_t> wanted{0x103, 0x104, 0x105};
  BOOST_TEST(callers(memory, stack, 3) == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(another_address_or_place_or_body_is_another_frame) {
  StackMemory memory;
  const MadeStack stack(6);
  memory.learn(stack.all(), 6, stack.view());
  MadeStack other = stack;
  other.frames[2] = Frame(0x999);
  BOOST_TEST(callers(memory, other, 3) == kNone);
  other = stack;
  other.stack_pointers[2] += 8;
  BOOST_TEST(callers(memory, other, 3) == kNone);
  other = stack;
  other.words[4 * 1 + 3] = 0x22;  // between the second frame and the third
  BOOST_TEST(callers(memory, other, 3) == kNone);
  other = stack;
  other.words[4 * 0 + 3] = 0x22;  // further inside: has no effect
  BOOST_TEST(callers(memory, other, 3).size() == 3u);
}

BOOST_AUTO_TEST_CASE(what_is_newer_is_believed) {
  StackMemory memory;
  MadeStack stack(6);
  memory.learn(stack.all(), 6, stack.view());
  stack.frames[4] = Frame(0x444);
  const std::vector<std::uint64_t> wanted{0x103, 0x444, 0x105};
  memory.learn(stack.all(), 6, stack.view());
  BOOST_TEST(callers(memory, stack, 3) == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(more_callers_than_there_is_room_for_are_none) {
  StackMemory memory;
  const MadeStack stack(6);
  memory.learn(stack.all(), 6, stack.view());
  std::vector<Frame> out(2);
  BOOST_TEST(memory.callers(stack.first(3), stack.view(), out) == 0u);
}

BOOST_AUTO_TEST_CASE(stack_pointers_that_do_not_rise_end_nowhere) {
  StackMemory memory;
  MadeStack stack(6);
  stack.stack_pointers[4] = stack.stack_pointers[1];
  stack.frames[4] = stack.frames[1];  // a cycle
  memory.learn(stack.all(), 6, stack.view());
  BOOST_TEST(callers(memory, stack, 2) == kNone);
}

BOOST_AUTO_TEST_CASE(memory_is_bounded_and_goes_on_working) {
  StackMemory memory;
  MadeStack stack(100);
  for (std::uint64_t round = 0; round < 2'000; ++round) {
    for (std::size_t i = 0; i < 50; ++i)
      stack.frames[i] = Frame(0x1000 * (round + 1) + i);
    memory.learn(stack.all(), 50, stack.view());
  }
  BOOST_TEST(callers(memory, stack, 10).size() == 90u);
}

BOOST_AUTO_TEST_SUITE_END()
