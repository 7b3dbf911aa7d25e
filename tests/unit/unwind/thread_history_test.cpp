// SPDX-License-Identifier: MIT
#include "unwind/walk/thread_history.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "support/costly.h"
#include "support/fake_program.h"

namespace {

using pe::testing::code;
using pe::testing::FakeCode;
using pe::testing::FakeProgram;
using pe::testing::kFakeCode;
using pe::testing::kFakeStack;
using pe::testing::slot;
using pe::testing::Walked;
using namespace pe::unwind;
using architecture::Registers;
using Words = std::vector<std::uint64_t>;
using Addresses = std::vector<std::uint64_t>;

struct Program {
  explicit Program(std::uint32_t seed) : program(seed) {}

  Walked walk(const StackView& stack, std::size_t room, bool with_history) {
    std::vector<Frame> out(room);
    const auto start = program.registers();
    const auto result = with_history ? walker.walk(program.space(), start, stack, out, history)
                                     : walker.walk(program.space(), start, stack, out);
    out.resize(result.frames);
    Walked walked{out, result.stop, result.last};
    if (with_history) {
      const auto sps = walker.stack_pointers(history);
      walked.sps.assign(sps.begin(), sps.end());
    }
    return walked;
  }

  FakeProgram program;
  RuleCache cache;
  Walker walker{cache};
  ThreadHistory history;
};

/// The functions, in this order: nothing pushed; CFA = rsp + 24; CFA = rbp + 16; one without a
/// caller; one that a signal handler returns to; CFA = *(rbp - 8), as in a realigned frame; CFA =
/// *rsp; and one that has popped the frame pointer.
struct HistoryFixture {
  static constexpr std::uint64_t kLeaf = kFakeCode, kThree = kFakeCode + 0x100,
                                 kBased = kFakeCode + 0x200, kEnd = kFakeCode + 0x300,
                                 kSignal = kFakeCode + 0x400, kRealigned = kFakeCode + 0x500,
                                 kGeneral = kFakeCode + 0x600, kPopped = kFakeCode + 0x700;
  FakeCode fake{{"", code({DW_CFA_def_cfa_offset, 24}),
                 code({DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2}), code({DW_CFA_undefined, 16}),
                 code({DW_CFA_expression, 7, 2, DW_OP_breg7, 8, DW_CFA_expression, 16, 2,
                       DW_OP_breg7, 16, DW_CFA_def_cfa_offset, 0}),
                 code({DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref,
                       DW_CFA_expression, 6, 2, DW_OP_breg6, 0}),
                 code({DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 0, DW_OP_deref}),
                 code({DW_CFA_offset | 6, 2})},
                4};
  AddressSpace space = fake.space();
  RuleCache cache;
  Walker walker{cache};
  ThreadHistory history;

  /// Walks from kLeaf; the result must be that of a walk without history.  Returns how many frames
  /// were copied from the history.
  std::uint64_t reused(const Words& words, std::uint64_t fp = 0, std::size_t room = 64) {
    const WalkStart start{Registers(FrameState{kLeaf, kFakeStack, fp})};
    const auto before = walker.statistics().frames_reused;
    const Walked with = pe::testing::walk(walker, space, start, words, &history, room);
    BOOST_CHECK(with == pe::testing::walk(walker, space, start, words, nullptr, room));
    return walker.statistics().frames_reused - before;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(thread_history, HistoryFixture)

BOOST_AUTO_TEST_CASE(a_stack_that_stayed_is_copied) {
  const Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kEnd + 8};
  BOOST_TEST(reused(words) == 0U);
  BOOST_TEST(history.size() == 4U);
  BOOST_TEST(reused(words) == 3U);
}

BOOST_AUTO_TEST_CASE(what_changed_inside_is_walked_and_what_is_outside_copied) {
  Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kThree + 10, 5, 6, kEnd + 8};
  reused(words);
  words[0] = kThree + 30;  // another call
  BOOST_TEST(reused(words) == 2U);
  words[4] = 77;  // no frame depends on it
  BOOST_TEST(reused(words) == 4U);
}

BOOST_AUTO_TEST_CASE(what_changed_outside_is_noticed) {
  Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kThree + 10, 5, 6, kEnd + 8};
  reused(words);
  words[6] = kThree + 40;
  BOOST_TEST(reused(words) == 0U);
  BOOST_TEST(walker.statistics().failed_matches == 1U);
}

BOOST_AUTO_TEST_CASE(a_saved_frame_pointer_that_is_used_is_compared) {
  // kBased restores rbp from word 2.  Its caller, also kBased, finds its frame by that rbp.
  Words words = {kBased + 8, 1, slot(5), kBased + 9, 3, slot(12), kEnd + 8, 0, 8, 0, kEnd + 9, 0};
  reused(words, slot(2));
  BOOST_TEST(reused(words, slot(2)) == 3U);
  words[2] = slot(9);  // the same return addresses, but another frame
  BOOST_TEST(reused(words, slot(2)) == 0U);
}

BOOST_AUTO_TEST_CASE(a_frame_pointer_in_a_register_is_compared) {
  Words words = {kThree + 8, 1, 2, kBased + 8, 0, kEnd + 8, 0, 0, kEnd + 9};
  reused(words, slot(4));
  BOOST_TEST(reused(words, slot(7)) == 0U);
}

BOOST_AUTO_TEST_CASE(a_frame_pointer_that_has_been_popped_is_not_compared_with_its_old_place) {
  // The old place is below the stack pointer, where nothing was copied.
  const Words words = {kBased + 8, 1, slot(5), kEnd + 8};
  const WalkStart start{Registers(FrameState{kPopped, kFakeStack, slot(2)})};
  for (int i = 0; i < 2; ++i)
    BOOST_TEST(pe::testing::walk(walker, space, start, words, &history).frames.size() == 3U);
  BOOST_TEST(walker.statistics().frames_reused == 2U);
}

BOOST_AUTO_TEST_CASE(a_difference_far_outside_is_met_once) {
  // 20 calls of kThree; then a function that saves rbp; then one that finds its frame by rbp.
  Words words = {kThree + 8};
  for (int i = 0; i < 20; ++i)
    words.insert(words.end(), {1, 2, kThree + 8});
  const auto depth = words.size();
  words.insert(words.end(),
               {1, 2, kBased + 8, 1, slot(depth + 7), kBased + 9, 0, 0, 0, kEnd + 8, 0, kEnd + 8});
  const auto saved = depth + 4;
  reused(words, slot(saved));
  words[saved] = slot(depth + 9);
  reused(words, slot(saved));
  BOOST_TEST(walker.statistics().failed_matches >= 1U);
  BOOST_TEST(walker.statistics().failed_matches <= 2U);
}

BOOST_AUTO_TEST_CASE(a_stack_that_was_cut_is_not_kept_and_does_not_replace_a_whole_one) {
  const Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kEnd + 8};
  reused(words);
  BOOST_TEST(reused(Words(words.begin(), words.begin() + 4)) == 0U);
  BOOST_TEST(history.size() == 4U);
  BOOST_TEST(reused(words) == 3U);
}

BOOST_AUTO_TEST_CASE(a_stack_of_which_less_was_copied_is_walked) {
  const Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kEnd + 8, 0, 0};
  reused(words);
  BOOST_TEST(reused(Words(words.begin(), words.begin() + 7)) == 3U);
  BOOST_TEST(reused(Words(words.begin(), words.begin() + 6)) == 0U);
}

// A comparison at each frame cost the square of the depth: 80 % of a CPU for 4,110 frames.
BOOST_AUTO_TEST_CASE(a_stack_that_has_no_room_is_not_compared_at_each_frame) {
  Words words = {kThree + 8};
  for (int i = 0; i < 20; ++i)
    words.insert(words.end(), {1, 2, kThree + 8});
  words.insert(words.end(), {1, 2, kEnd + 8});
  reused(words);
  const auto before = walker.statistics().failed_matches;
  BOOST_TEST(reused(words, 0, 20) == 0U);
  BOOST_TEST(walker.statistics().failed_matches == before);
}

BOOST_AUTO_TEST_CASE(a_stack_that_has_no_room_is_walked) {
  const Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kEnd + 8};
  reused(words);
  BOOST_TEST(reused(words, 0, 3) == 0U);
  BOOST_TEST(reused(words, 0, 4) == 3U);
}

BOOST_AUTO_TEST_CASE(a_stack_that_was_left_for_another_is_not_compared) {
  // The handler runs on the other stack.  The history's stack is not in the copy.
  Words words = {kThree + 8, 1, 2, kEnd + 8, 0, 0, kSignal + 1, 0, kFakeStack, kLeaf, 0, 0};
  reused(words);
  const WalkStart start{Registers(FrameState{kLeaf, slot(6), 0})};
  std::vector<Frame> out(8);
  const StackView handler(slot(6), std::as_bytes(std::span(words)).subspan(6 * 8));
  const auto result = walker.walk(space, start, handler, out, history);
  BOOST_CHECK(result.stop == Stop::kStackNotCaptured);
  BOOST_TEST(result.frames == 3U);
  BOOST_TEST(result.reused == 0U);
  BOOST_TEST(walker.stack_pointers(history)[2] == kFakeStack);
  BOOST_TEST(reused(words) == 2U);  // the history has not changed
}

BOOST_AUTO_TEST_CASE(a_cfa_that_was_read_from_the_stack_is_not_jumped_over) {
  // All return addresses stay in place, but the walk must take others.
  Words words = {kRealigned + 8, 0, 0, slot(7), 0, 0, kEnd + 8, 0, kThree + 9, 0, 0, kEnd + 9};
  reused(words, slot(4));
  words[3] = slot(9);
  BOOST_TEST(reused(words, slot(4)) == 0U);
  words = {kGeneral + 8, slot(7), 0, 0, 0, 0, kEnd + 8, 0, kThree + 9, 0, 0, kEnd + 9};
  reused(words);
  words[1] = slot(9);
  BOOST_TEST(reused(words) == 0U);
}

BOOST_AUTO_TEST_CASE(the_zero_at_the_end_is_compared) {
  Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, 0, 5, 6, kEnd + 1};
  reused(words);
  BOOST_TEST(reused(words) == 2U);
  words[6] = kThree + 7;
  BOOST_TEST(reused(words) == 0U);
}

BOOST_AUTO_TEST_CASE(a_guess_that_failed_is_made_again) {
  // There are no rules and no frame pointer: the stack ends, unless its top is an address of a
  // caller.
  constexpr std::uint64_t kBare = kFakeCode + 0x800;
  const WalkStart start{Registers(FrameState{kBare, kFakeStack, 0})};
  Words words = {1, 2, kThree + 8, 3, 4, kEnd + 8};
  const auto walk = [&] { return pe::testing::walk(walker, space, start, words, &history); };
  BOOST_TEST(walk().frames.size() == 1U);
  words[0] = kThree + 8;
  words[3] = kEnd + 8;
  BOOST_TEST(walk().frames.size() == 3U);
}

BOOST_AUTO_TEST_CASE(unmapping_code_forgets_the_stack) {
  const Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kEnd + 8};
  reused(words);
  space.map({0x500, 0x600, 0, std::nullopt});
  BOOST_TEST(reused(words) == 3U);
  space.unmap(kThree + 0x80, kThree + 0x90);
  BOOST_TEST(reused(words) == 0U);
}

BOOST_AUTO_TEST_CASE(stack_pointers_of_walked_and_of_copied_frames_are_told) {
  Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kThree + 10, 5, 6, kEnd + 8};
  const WalkStart start{Registers(FrameState{kLeaf, kFakeStack, 0})};
  std::vector<Frame> out(64);
  const Addresses expected = {kFakeStack, slot(1), slot(4), slot(7), slot(10)};
  for (const std::size_t walked : {5U, 3U, 1U}) {
    const auto result = walker.walk(space, start, pe::testing::view_of(words), out, history);
    BOOST_TEST(result.walked() == walked);
    BOOST_TEST(result.reused == 5 - walked);
    BOOST_TEST(walker.stack_pointers(history) == expected, boost::test_tools::per_element());
    words[0] = kThree + 30;  // another call
  }
}

BOOST_AUTO_TEST_CASE(stack_pointers_are_told_of_stacks_that_end_early) {
  const Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kEnd + 8};
  const WalkStart start{Registers(FrameState{kLeaf, kFakeStack, 0})};
  const auto sps = [&](std::size_t bytes, std::size_t room) {
    std::vector<Frame> out(room);
    const auto view = pe::testing::view_of(words);
    const StackView part(view.start(), std::as_bytes(std::span(words)).first(bytes));
    walker.walk(space, start, part, out, history);
    const auto found = walker.stack_pointers(history);
    return Addresses(found.begin(), found.end());
  };
  reused(words);
  BOOST_CHECK((sps(32, 64) == Addresses{kFakeStack, slot(1), slot(4)}));  // not captured
  BOOST_CHECK((sps(56, 2) == Addresses{kFakeStack, slot(1)}));            // too deep
  BOOST_CHECK((sps(0, 64) == Addresses{kFakeStack}));
  BOOST_CHECK(sps(56, 0).empty());
  BOOST_CHECK((sps(56, 64) == Addresses{kFakeStack, slot(1), slot(4), slot(7)}));
}

BOOST_AUTO_TEST_CASE(stacks_of_random_programs_are_the_same_with_and_without,
                     *pe::tests::costly()) {
  std::uint64_t reused_frames = 0;
  std::uint64_t whole = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    Program run(seed);
    for (int sample = 0; sample < 500; ++sample) {
      run.program.run();
      const std::uint64_t bytes =
          run.program.below(4) == 0 ? run.program.below(2000) : FakeProgram::kWords * 8;
      const std::size_t room = run.program.below(8) == 0 ? run.program.below(40) : 200;
      const StackView stack = run.program.stack(bytes);
      const Walked with = run.walk(stack, room, true);
      const Walked without = run.walk(stack, room, false);
      BOOST_REQUIRE_MESSAGE(with == without, "seed " << seed << ", sample " << sample);
      const Addresses sps = run.program.true_stack_pointers();
      BOOST_REQUIRE(with.sps.size() == with.frames.size());
      BOOST_REQUIRE_MESSAGE(std::equal(with.sps.begin(), with.sps.end(), sps.begin()),
                            "seed " << seed << ", sample " << sample);
      if (with.stop == Stop::kEndOfStack) {
        BOOST_REQUIRE_MESSAGE(with.addresses() == run.program.truth(),
                              "seed " << seed << ", sample " << sample);
        ++whole;
      }
    }
    reused_frames += run.walker.statistics().frames_reused;
  }
  BOOST_TEST(whole > 10'000U);
  BOOST_TEST(reused_frames > whole);
}

BOOST_AUTO_TEST_SUITE_END()
