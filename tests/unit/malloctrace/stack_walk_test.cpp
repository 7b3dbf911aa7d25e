// Our own stacks beside backtrace(3), which is libgcc's unwinder: each walk may join the one
// before.
// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_walk.h"

#include <execinfo.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "call_paths.h"
#include "shared_room.h"

extern "C" {
extern void*
    __libc_stack_end;  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
}

BOOST_AUTO_TEST_SUITE(stack_walk)

namespace {

using namespace pe::malloctrace;
using pe::testing::SharedRoom;
using pe::testing::Zeroed;

StackEnd no_other_stack(std::uint64_t /*sp*/) noexcept { return {0}; }

class Pair {
 public:
  explicit Pair(std::uint32_t depth = 0) {
    BOOST_REQUIRE(codes_->start(room_.memory()));
    BOOST_REQUIRE(walk_->start(*codes_, depth, no_other_stack));
  }
  ~Pair() { walk_->stop(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  [[nodiscard]] StackWalk& walk() const { return *walk_; }
  [[nodiscard]] std::size_t different() const { return different_; }
  [[nodiscard]] std::size_t compared() const { return compared_; }

  /// `frame` is that of the function whose caller's stack is walked.
  [[gnu::noinline]] void compare(const std::uint64_t* frame) {
    const auto end = reinterpret_cast<std::uint64_t>(__libc_stack_end) + 64;
    const WalkedStack stack =
        walk_->walk({frame[1], reinterpret_cast<std::uint64_t>(frame + 2), frame[0]}, {end});
    const int size = ::backtrace(expected_.data(), static_cast<int>(expected_.size()));
    // We, the function, and under sanitizers an interceptor stand above.
    const auto above = static_cast<std::size_t>(
        std::find(expected_.begin(), expected_.begin() + std::min(size, 4),
                  reinterpret_cast<void*>(frame[1])) -  // NOLINT(performance-no-int-to-ptr)
        expected_.begin());
    bool is_same = stack.depth == static_cast<std::size_t>(size) - above;
    for (std::size_t i = 0; is_same && i < stack.depth; ++i) {
      const pe::heap::Code& code = room_.memory().codes()[walk_->code(stack.depth - 1 - i)];
      is_same = code.avma == reinterpret_cast<std::uint64_t>(expected_[above + i]);
    }
    ++compared_;
    different_ += is_same && !walk_->is_incomplete() && !walk_->is_cut() ? 0 : 1;
  }

 private:
  SharedRoom room_;
  Zeroed<CodeBook> codes_;
  Zeroed<StackWalk> walk_;
  std::array<void*, 20000> expected_;
  std::size_t compared_ = 0, different_ = 0;
};

[[gnu::noinline]] void compare_at_leaf(void* pair) {
  static_cast<Pair*>(pair)->compare(static_cast<const std::uint64_t*>(__builtin_frame_address(0)));
  asm volatile("");  // not by a jump
}

constexpr std::array<void (*)(const CallPath*), 12> kShapes = {
    o0_plain,  o0_recursive, o0_alloca, o0_realigned, o2_plain,     o2_recursive,
    o2_alloca, o2_realigned, o3_plain,  o3_realigned, fp_recursive, fp_alloca};

/// A random way through all shapes, with a comparison at each leaf.
struct Way {
  Pair* pair;
  std::mt19937 random;
  int left;  ///< shapes above
};

[[gnu::noinline]] void go_on(void* memory) {
  auto& way = *static_cast<Way*>(memory);
  const int turns = static_cast<int>(way.random() % 3) + 1;
  for (int i = 0; i < turns; ++i) {
    compare_at_leaf(way.pair);
    if (way.left == 0)
      continue;
    --way.left;
    const CallPath path{go_on, &way, static_cast<int>(way.random() % 12) + 1};
    kShapes[way.random() % kShapes.size()](&path);
    ++way.left;
  }
  asm volatile("");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_shape_of_frame_is_walked_as_libgcc_does) {
  const auto pair = std::make_unique<Pair>();
  for (const auto shape : kShapes)
    for (const int depth : {20, 1000, 3}) {
      const CallPath path{compare_at_leaf, pair.get(), depth};
      shape(&path);
      BOOST_TEST(pair->different() == 0U);
    }
  BOOST_TEST(pair->compared() == 3 * kShapes.size());
}

BOOST_AUTO_TEST_CASE(a_walk_that_joins_the_last_one_is_as_a_fresh_one) {
  const auto pair = std::make_unique<Pair>();
  for (std::uint32_t seed = 1; seed < 60; ++seed) {
    Way way{pair.get(), std::mt19937(seed), 6};
    go_on(&way);
  }
  BOOST_TEST(pair->compared() > 2000U);
  BOOST_TEST(pair->different() == 0U);
  BOOST_TEST(pair->walk().counts().reused > pair->walk().counts().walked);
}

BOOST_AUTO_TEST_CASE(a_limit_keeps_the_innermost_frames) {
  const auto pair = std::make_unique<Pair>(5);
  const CallPath path{compare_at_leaf, pair.get(), 20};
  for (int i = 0; i < 3; ++i) {
    o2_plain(&path);
    BOOST_TEST(pair->walk().is_cut());
    BOOST_TEST(pair->walk().counts().walked == 5U * (i + 1));
  }
}

BOOST_AUTO_TEST_SUITE_END()
