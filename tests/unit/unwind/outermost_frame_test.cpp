// SPDX-License-Identifier: MIT
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <span>
#include <vector>

#include "support/walks.h"

BOOST_AUTO_TEST_SUITE(outermost_frame)

namespace {

using namespace pe::unwind;
using namespace pe::testing;

constexpr std::uint64_t kFunction = kFakeCode;      // with rules: it has pushed nothing
constexpr std::uint64_t kBare = kFakeCode + 0xa00;  // no rules at all

/// Returns why the stack of `words` ends, which starts in kFunction with a frame pointer of 0.
Stop stop_of_walk(AddressSpace& space, const std::vector<std::uint64_t>& words) {
  RuleCache cache;
  Walker walker(cache);
  const WalkStart start{architecture::Registers(FrameState{kFunction, kFakeStack, 0})};
  const Walked fast = walk(walker, space, start, words);
  BOOST_CHECK((fast.addresses() == std::vector<std::uint64_t>{kFunction, words[0]}));
  BOOST_CHECK(walk_slowly(space, start, words) == fast);
  return fast.stop;
}

}  // namespace

// Assembly without rules uses the register for a number.
BOOST_AUTO_TEST_CASE(a_frame_pointer_of_zero_is_no_end_below_a_return_address) {
  FakeCode fake({""});
  bool has_calls = true;
  AddressSpace space(fake.source(), [&](std::uint64_t, std::span<std::byte> into) {
    std::ranges::fill(into, has_calls ? std::byte{0xe8} : std::byte{0x90});
    return into.size();
  });
  space.map(FakeCode::mapping());
  std::vector<std::uint64_t> words(20, 1);
  words[0] = kBare + 4;
  BOOST_CHECK(stop_of_walk(space, words) == Stop::kEndOfStack);
  words[16] = kFunction + 8;
  BOOST_CHECK(stop_of_walk(space, words) == Stop::kNoUnwindInfo);
  has_calls = false;  // only addresses after a call return
  BOOST_CHECK(stop_of_walk(space, words) == Stop::kEndOfStack);
  has_calls = true;
  std::swap(words[16], words[17]);  // too far away
  BOOST_CHECK(stop_of_walk(space, words) == Stop::kEndOfStack);
}

BOOST_AUTO_TEST_CASE(code_that_cannot_be_read_may_have_a_call) {
  FakeCode fake({""});
  AddressSpace space = fake.space();
  BOOST_CHECK(stop_of_walk(space, {kBare + 4, 1, kFunction + 8}) == Stop::kNoUnwindInfo);
  BOOST_CHECK(stop_of_walk(space, {kBare + 4, 1, 2}) == Stop::kEndOfStack);
}

BOOST_AUTO_TEST_SUITE_END()
