// SPDX-License-Identifier: MIT
#include "offcpu/bpf/kernel_stack_counts.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "unwind/walk/frame.h"

using pe::offcpu::describe_losses;
using pe::offcpu::KernelStackCounts;
using pe::unwind::StackCounts;
using namespace pe::unwind;

BOOST_AUTO_TEST_SUITE(kernel_stack_counts)

namespace {

std::uint64_t frame(pe::unwind::FrameSource source) {
  return std::bit_cast<std::uint64_t>(pe::unwind::Frame(0x1000, source, false));
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_no_stacks_nothing_is_said) {
  BOOST_TEST(KernelStackCounts().describe({}) == "");
}

BOOST_AUTO_TEST_CASE(stacks_count_as_often_as_they_were_waited_on) {
  KernelStackCounts counts;
  counts.add({.frames = {}, .stop = kStopEndOfStack}, 3);
  BOOST_TEST(counts.describe({}) == "100.0 % of stacks complete");
  counts.add({.frames = {}, .stop = kStopTooDeep}, 1);
  BOOST_TEST(counts.describe({}) == "75.0 % of stacks complete; 1 ended: too deep");
}

BOOST_AUTO_TEST_CASE(stacks_that_user_space_has_walked_are_among_them) {
  KernelStackCounts counts;
  counts.add({.frames = {}, .stop = kStopEndOfStack}, 3);
  StackCounts others;
  others.stacks = 5;
  others.complete = 1;
  BOOST_TEST(counts.describe(others) == "50.0 % of stacks complete");
  BOOST_TEST(KernelStackCounts().describe(others) == "20.0 % of stacks complete");
}

BOOST_AUTO_TEST_CASE(how_frames_were_found_is_counted_for_each_wait) {
  using pe::unwind::FrameSource;
  const std::vector<std::uint64_t> frames{
      frame(FrameSource::kCfi), frame(FrameSource::kFramePointer),
      frame(FrameSource::kFramePointer), frame(FrameSource::kLeaf)};
  KernelStackCounts counts;
  counts.add({.frames = frames, .stop = kStopEndOfStack}, 2);
  StackCounts others;
  others.by_frame_pointer = others.by_leaf = 1;
  BOOST_TEST(counts.describe(others) ==
             "100.0 % of stacks complete; 5 frames found by frame pointer; 3 frames guessed from "
             "the top of the stack");
}

BOOST_AUTO_TEST_CASE(each_reason_has_its_own_words) {
  std::vector<std::string> texts;
  for (int stop = kStopEndOfStack + 1; stop < kStackStopCount; ++stop) {
    KernelStackCounts counts;
    counts.add({.frames = {}, .stop = static_cast<StackStop>(stop)}, 2);
    const std::string text = counts.describe({});
    constexpr std::string_view kBegins = "0.0 % of stacks complete; 2 ended: ";
    BOOST_TEST(text.starts_with(kBegins));
    BOOST_TEST(text.size() > kBegins.size());
    for (const std::string& other : texts)
      BOOST_TEST(text != other);
    texts.push_back(text);
  }
  BOOST_TEST(texts[kStopUnsupported - 1].ends_with("rules that the kernel cannot follow"));
  BOOST_TEST(texts[kStopNot64Bit - 1].ends_with("32-bit programs"));
}

BOOST_AUTO_TEST_CASE(what_found_its_room_is_no_loss) {
  Counts counts{};
  counts.stacks = counts.reused = counts.frames = 1;
  counts.stops[kStopTooDeep] = 1;
  counts.missed_ns = 1;
  BOOST_TEST(describe_losses(counts) == "");
}

BOOST_AUTO_TEST_CASE(each_loss_is_told) {
  using Field = std::uint64_t Counts::*;
  const auto told = [](Field which, std::uint64_t count) {
    Counts counts{};
    counts.*which = count;
    counts.sums_full_ns = 300'000'000;
    counts.missed_ns = 1'500'000'000;
    return describe_losses(counts);
  };
  BOOST_TEST(told(&Counts::sums_full, 12) == "; 12 without room in the kernel's map, 0.300 s");
  BOOST_TEST(told(&Counts::missed, 2) == "; 2 ended unseen, 1.500 s worked out");
  BOOST_TEST(told(&Counts::no_storage, 3) == "; 3 of threads without room in the kernel");
  BOOST_TEST(told(&Counts::stacks_full, 1) == "; 1 stack had no room in the kernel's map");
  BOOST_TEST(told(&Counts::ring_full, 2) == "; 2 stacks could not be handed on to be walked");
  BOOST_TEST(told(&Counts::execs_full, 2) == "; 2 processes too many to follow what they execute");
  BOOST_TEST(told(&Counts::targets_full, 2) == "; 2 processes too many to be followed");
}

BOOST_AUTO_TEST_CASE(all_losses_stand_in_a_row) {
  Counts counts{};
  counts.sums_full = 1;
  counts.sums_full_ns = 1'000'000;
  counts.stacks_full = 2;
  BOOST_TEST(describe_losses(counts) ==
             "; 1 without room in the kernel's map, 0.001 s; 2 stacks had no room in the kernel's "
             "map");
}

BOOST_AUTO_TEST_SUITE_END()
