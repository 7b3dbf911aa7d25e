// SPDX-License-Identifier: MIT
#include "recording/waits/stack_reader.h"

#include <boost/test/unit_test.hpp>

#include <bit>
#include <vector>

#include "unwind/walk/frame.h"

using pe::unwind::StackCounts;
using pe::waits::add_losses;
using pe::waits::KernelStackCounts;
using namespace pe::unwind;

BOOST_AUTO_TEST_SUITE(kernel_stack_counts)

namespace {

std::uint64_t frame(pe::unwind::FrameSource source) {
  return std::bit_cast<std::uint64_t>(pe::unwind::Frame(0x1000, source, false));
}

/// Describes the stacks of the kernel and `others`.
std::string share(const KernelStackCounts& counts, const StackCounts& others) {
  return describe(counts.with(others));
}

std::vector<std::string> losses_of(const Counts& counts, bool has_perf = true) {
  pe::Closing closing;
  add_losses(counts, has_perf, closing);
  std::vector<std::string> lines = closing.doubts;
  lines.insert(lines.end(), closing.details.begin(), closing.details.end());
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_no_stacks_nothing_is_said) {
  BOOST_TEST(share(KernelStackCounts(), {}) == "");
  BOOST_TEST(KernelStackCounts().ends().empty());
}

BOOST_AUTO_TEST_CASE(stacks_count_as_often_as_they_were_waited_on) {
  KernelStackCounts counts;
  counts.add({.frames = {}, .stop = kStopEndOfStack}, 3);
  BOOST_TEST(share(counts, {}) == "100.0 % of stacks complete");
  counts.add({.frames = {}, .stop = kStopTooDeep}, 1);
  BOOST_TEST(share(counts, {}) == "75.0 % of stacks complete");
  BOOST_TEST(counts.ends() == std::vector<std::string>{"1 ended: too deep"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(stacks_that_user_space_has_walked_are_among_them) {
  KernelStackCounts counts;
  counts.add({.frames = {}, .stop = kStopEndOfStack}, 3);
  StackCounts others;
  others.stacks = 5;
  others.complete = 1;
  BOOST_TEST(share(counts, others) == "50.0 % of stacks complete");
  BOOST_TEST(share(KernelStackCounts(), others) == "20.0 % of stacks complete");
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
  BOOST_TEST(share(counts, others) ==
             "100.0 % of stacks complete; 5 frames found by frame pointer; 3 frames guessed from "
             "the top of the stack");
}

BOOST_AUTO_TEST_CASE(each_reason_has_its_own_words) {
  std::vector<std::string> texts;
  for (int stop = kStopEndOfStack + 1; stop < kStackStopCount; ++stop) {
    KernelStackCounts counts;
    counts.add({.frames = {}, .stop = static_cast<StackStop>(stop)}, 2);
    const std::string text = counts.ends().at(0);
    constexpr std::string_view kBegins = "2 ended: ";
    BOOST_TEST(text.starts_with(kBegins));
    BOOST_TEST(text.size() > kBegins.size());
    for (const std::string& other : texts)
      BOOST_TEST(text != other);
    texts.push_back(text);
  }
  BOOST_TEST(texts[kStopUnsupported - 1].ends_with("unwind rules that the kernel cannot follow"));
  BOOST_TEST(texts[kStopNot64Bit - 1].ends_with("32-bit programs"));
}

BOOST_AUTO_TEST_CASE(what_found_its_room_is_no_loss) {
  Counts counts{};
  counts.stacks = counts.reused = counts.frames = 1;
  counts.stops[kStopTooDeep] = 1;
  counts.missed_ns = 1;
  const std::vector<std::string> lines = losses_of(counts);
  BOOST_TEST(lines.empty());
}

BOOST_AUTO_TEST_CASE(each_loss_is_a_line_with_its_fix) {
  using Field = std::uint64_t Counts::*;
  const auto told = [](Field which, std::uint64_t count) {
    Counts counts{};
    counts.*which = count;
    counts.sums_full_ns = 300'000'000;
    counts.missed_ns = 1'500'000'000;
    return losses_of(counts).at(0);
  };
  const std::string fewer = ": record fewer threads";
  const std::string all = ": record fewer processes, or use --all";
  BOOST_TEST(told(&Counts::sums_full, 12) ==
             "12 waits had no room in the kernel's map, 0.300 s" + fewer);
  BOOST_TEST(told(&Counts::missed, 2) == "2 waits ended unseen, 1.500 s were calculated");
  BOOST_TEST(told(&Counts::no_storage, 3) ==
             "3 waits of threads that had no room in the kernel" + fewer);
  BOOST_TEST(told(&Counts::stacks_full, 1) == "1 stack had no room in the kernel's map" + fewer);
  BOOST_TEST(told(&Counts::ring_full, 2) ==
             "2 stacks had no room in the ring from which they are walked: use --engine perf");
  BOOST_TEST(told(&Counts::samples_full, 2) ==
             "2 CPU samples had no room in the same ring: lower --freq");
  BOOST_TEST(told(&Counts::execs_full, 2) ==
             "2 processes could not be followed into the programs that they execute" + all);
  BOOST_TEST(told(&Counts::targets_full, 2) == "2 processes could not be followed" + all);
}

BOOST_AUTO_TEST_CASE(the_perf_engine_is_advised_only_where_it_records_the_same) {
  Counts counts{};
  counts.ring_full = counts.commands_full = 1;
  for (const std::string& line : losses_of(counts, false))
    BOOST_TEST(line.ends_with(": record fewer threads"));
}

BOOST_AUTO_TEST_CASE(several_losses_are_several_lines) {
  Counts counts{};
  counts.sums_full = 1;
  counts.stacks_full = 2;
  BOOST_TEST(losses_of(counts).size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
