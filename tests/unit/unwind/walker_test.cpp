// SPDX-License-Identifier: MIT
#include "unwind/walk/walker.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "support/walks.h"

namespace {

using pe::testing::code;
using pe::testing::FakeCode;
using pe::testing::kFakeCode;
using pe::testing::kFakeStack;
using pe::testing::slot;
using pe::testing::Walked;
using namespace pe::unwind;
using architecture::Registers;
using Words = std::vector<std::uint64_t>;
using Addresses = std::vector<std::uint64_t>;

/// The functions of the code that the tests walk.
enum Function : std::uint64_t {
  kLeaf = kFakeCode,                // nothing pushed
  kThree = kFakeCode + 0x100,       // CFA = rsp + 24
  kBased = kFakeCode + 0x200,       // CFA = rbp + 16, rbp saved
  kEnd = kFakeCode + 0x300,         // no caller
  kByR10 = kFakeCode + 0x400,       // CFA = r10, r10 restored from the frame
  kSignal = kFakeCode + 0x500,      // a signal frame: rip and rsp from the stack
  kBack = kFakeCode + 0x600,        // CFA = rsp
  kSavesR10 = kFakeCode + 0x700,    // CFA = rsp + 24, r10 saved in the first word
  kInRegister = kFakeCode + 0x800,  // CFA = rsp, return address in rcx
  kSwitch = kFakeCode + 0x900,      // rip and rsp from the stack, but no signal frame
  kBare = kFakeCode + 0xa00,        // no rules at all
};

FakeCode make_code() {
  return FakeCode(
      {"", code({DW_CFA_def_cfa_offset, 24}), code({DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2}),
       code({DW_CFA_undefined, 16}), code({DW_CFA_def_cfa, 10, 0}),
       code({DW_CFA_expression, 7, 2, DW_OP_breg7, 8, DW_CFA_expression, 16, 2, DW_OP_breg7, 16,
             DW_CFA_def_cfa_offset, 0}),
       code({DW_CFA_def_cfa_offset, 0}), code({DW_CFA_def_cfa_offset, 24, DW_CFA_offset | 10, 3}),
       code({DW_CFA_def_cfa_offset, 0, DW_CFA_register, 16, 2}),
       code({DW_CFA_expression, 7, 2, DW_OP_breg7, 8, DW_CFA_expression, 16, 2, DW_OP_breg7, 16,
             DW_CFA_def_cfa_offset, 0})},
      (kSignal - kFakeCode) / 0x100);
}

struct WalkerFixture {
  FakeCode fake = make_code();
  AddressSpace space = fake.space();
  RuleCache cache;
  Walker walker{cache};

  /// Walks from `ip` with all of `words` as the stack; all ways of walking must agree.
  Walked walk(std::uint64_t ip, const Words& words, std::uint64_t fp = 0,
              std::size_t max_frames = 64) {
    return walk(WalkStart{Registers(FrameState{ip, kFakeStack, fp})}, words, max_frames);
  }
  Walked walk(const WalkStart& start, const Words& words, std::size_t max_frames = 64) {
    const Walked cold = pe::testing::walk(walker, space, start, words, nullptr, max_frames);
    BOOST_CHECK(pe::testing::walk(walker, space, start, words, nullptr, max_frames) == cold);
    const Walked slow = pe::testing::walk_slowly(space, start, words, max_frames);
    BOOST_CHECK(slow == cold);
    ThreadHistory history;
    for (int i = 0; i < 2; ++i) {
      const Walked again = pe::testing::walk(walker, space, start, words, &history, max_frames);
      BOOST_CHECK(again == cold);
      BOOST_CHECK(again.sps == slow.sps);
    }
    return slow;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(walker, WalkerFixture)

BOOST_AUTO_TEST_CASE(a_stack_is_walked_to_the_function_without_a_caller) {
  const Walked walked = walk(kLeaf + 4, {kThree + 8, 1, 2, kBased + 8, 3, kEnd + 8});
  BOOST_CHECK((walked.addresses() == Addresses{kLeaf + 4, kThree + 8, kBased + 8}));
  BOOST_CHECK(walked.stop == Stop::kNoProgress);  // rbp is 0 in kBased
  const Walked whole = walk(kLeaf + 4, {kThree + 8, 1, 2, kBased + 8, 0, kEnd + 8}, slot(4));
  BOOST_CHECK((whole.addresses() == Addresses{kLeaf + 4, kThree + 8, kBased + 8, kEnd + 8}));
  BOOST_CHECK(whole.stop == Stop::kEndOfStack);
  BOOST_TEST(whole.frames[0].is_exact());
  BOOST_TEST(!whole.frames[1].is_exact());
  BOOST_CHECK(whole.frames[3].source() == FrameSource::kCfi);
}

BOOST_AUTO_TEST_CASE(a_call_is_looked_up_before_its_return_address) {
  // The call is the last instruction of kThree; the return address is in the next function.
  const Walked walked = walk(kLeaf, {kBased, 1, 2, kEnd + 1});
  BOOST_CHECK((walked.addresses() == Addresses{kLeaf, kBased, kEnd + 1}));
  // The first address is exact.
  BOOST_CHECK((walk(kThree, {1, 2, kEnd + 1}).addresses() == Addresses{kThree, kEnd + 1}));
}

BOOST_AUTO_TEST_CASE(a_signal_gives_an_exact_address_which_may_be_a_functions_first) {
  //                           rsp: 3    rip
  const Walked walked = walk(kLeaf, {kSignal + 1, 0, slot(4), kThree, 1, 2, kEnd + 1});
  BOOST_CHECK((walked.addresses() == Addresses{kLeaf, kSignal + 1, kThree, kEnd + 1}));
  BOOST_TEST(walked.frames[2].is_exact());
  BOOST_TEST(!walked.frames[3].is_exact());
}

BOOST_AUTO_TEST_CASE(what_a_signal_interrupted_on_another_stack_can_be_gone_on_from) {
  const Words other = {1, 2, kEnd + 1};
  for (const std::uint64_t sp : {std::uint64_t{0x4000}, slot(1000)}) {  // below and above
    const Walked walked = walk(kLeaf, {kSignal + 1, 0, sp, kThree, 4, 5}, 77);
    BOOST_CHECK((walked.addresses() == Addresses{kLeaf, kSignal + 1, kThree}));
    BOOST_CHECK((walked.sps == Addresses{kFakeStack, slot(1), sp}));
    BOOST_TEST(walked.frames[2].is_exact());
    BOOST_CHECK(walked.stop == Stop::kStackNotCaptured);
    BOOST_CHECK((walked.last == FrameState{kThree, sp, 77}));
    std::vector<Frame> out(8);
    const auto rest = walker.walk(space, WalkStart{Registers(walked.last)},
                                  StackView(sp, std::as_bytes(std::span(other))), out);
    BOOST_CHECK(rest.stop == Stop::kEndOfStack);
    BOOST_TEST(rest.frames == 2U);
    BOOST_CHECK(out[0] == walked.frames[2]);
    BOOST_CHECK(out[1] == Frame(kEnd + 1));
  }
}

BOOST_AUTO_TEST_CASE(other_switches_of_stacks_are_believed_if_they_lead_to_code) {
  const auto walked = [this](std::uint64_t return_address, std::size_t room) {
    return walk(WalkStart{Registers(FrameState{kSwitch, kFakeStack, 0})},
                {0, 0x4000, return_address}, room);
  };
  const Walked code = walked(kThree + 4, 8);
  BOOST_CHECK((code.addresses() == Addresses{kSwitch, kThree + 4}));
  BOOST_TEST(!code.frames[1].is_exact());
  BOOST_CHECK(code.stop == Stop::kStackNotCaptured);
  BOOST_CHECK(walked(0x5000, 8).stop == Stop::kBadReturnAddress);
  BOOST_TEST(walked(0x5000, 8).frames.size() == 1U);
  BOOST_CHECK(walked(kThree + 4, 1).stop == Stop::kTooDeep);
}

BOOST_AUTO_TEST_CASE(stubs_without_a_table_are_known_by_their_bytes) {
  constexpr std::uint64_t kStubs = 0x40000;  // two stubs, one at each end of the mapping
  const std::string bytes(
      "\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3\0\0\0\0\0"
      "\x55\x48\x89\xe5\xff\xd1\x5d\xc3",
      24);
  std::size_t readable = bytes.size();
  AddressSpace with_stubs(fake.source(), [&](std::uint64_t avma, std::span<std::byte> into) {
    BOOST_TEST((avma >= kStubs && avma + into.size() <= kStubs + bytes.size()));
    return std::min(into.size(), readable) == 0
               ? 0
               : bytes.copy(reinterpret_cast<char*>(into.data()), into.size(), avma - kStubs);
  });
  with_stubs.map(FakeCode::mapping());
  with_stubs.map({kStubs, kStubs + bytes.size(), 0, std::nullopt});
  const auto walked = [&](std::uint64_t ip, const Words& words) {
    const WalkStart start{Registers(FrameState{ip, kFakeStack, 77})};
    const Walked fast = pe::testing::walk(walker, with_stubs, start, words);
    BOOST_CHECK(pe::testing::walk_slowly(with_stubs, start, words) == fast);
    return fast;
  };
  // Walks through calls made by the stubs.  One has pushed a word, the other the frame pointer.
  const Walked calls = walked(kLeaf, {kStubs + 6, 5, kLeaf + 1, kStubs + 22, slot(9), kEnd + 1});
  BOOST_CHECK(
      (calls.addresses() == Addresses{kLeaf, kStubs + 6, kLeaf + 1, kStubs + 22, kEnd + 1}));
  BOOST_CHECK(calls.stop == Stop::kEndOfStack);
  BOOST_TEST(calls.last.fp == slot(9));
  BOOST_CHECK(calls.frames[2].source() == FrameSource::kCfi);
  // Walks from instructions of the stubs before and after their pushes.
  for (const std::uint64_t at : {0, 10, 16, 23})
    BOOST_CHECK(walked(kStubs + at, {kEnd + 1}).stop == Stop::kEndOfStack);
  for (const std::uint64_t at : {4, 6, 17, 20, 22})
    BOOST_CHECK(
        (walked(kStubs + at, {slot(3), kEnd + 1}).addresses() == Addresses{kStubs + at, kEnd + 1}));
  // Code that can be read and is no stub is not treated as one.
  BOOST_CHECK(walked(kLeaf, {kStubs + 9, 5, kLeaf + 1, kEnd + 1}).stop == Stop::kNoUnwindInfo);
}

BOOST_AUTO_TEST_CASE(a_fiber_ends_at_its_known_entry) {
  // The entry is returned to, but has not called anything.  glibc's starts at the return address,
  // Boost's three bytes before it.
  constexpr std::uint64_t kEntries = kBare + 0x40;
  const std::string bytes(
      "\x90\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x90\x90"
      "\x55\xff\xe3\x48\x31\xff\xe8\x12\x34\x56\x78\xf4");
  AddressSpace with_entries(fake.source(), [&](std::uint64_t avma, std::span<std::byte> into) {
    std::string code(into.size(), '\x90');
    for (std::size_t i = 0; i < code.size(); ++i)
      if (avma + i >= kEntries && avma + i < kEntries + bytes.size())
        code[i] = bytes[avma + i - kEntries];
    return code.copy(reinterpret_cast<char*>(into.data()), into.size());
  });
  with_entries.map(FakeCode::mapping());
  for (const std::uint64_t entry : {kEntries + 1, kEntries + 16}) {
    const WalkStart start{Registers(FrameState{kLeaf, kFakeStack, 77})};
    const Words words{entry, 5, 6, 7};
    const Walked fast = pe::testing::walk(walker, with_entries, start, words);
    BOOST_CHECK((fast.addresses() == Addresses{kLeaf, entry}));
    BOOST_CHECK(fast.stop == Stop::kEndOfStack);
    BOOST_CHECK(pe::testing::walk_slowly(with_entries, start, words) == fast);
  }
}

BOOST_AUTO_TEST_CASE(a_stub_that_cannot_be_read_is_guessed_by_the_shape_of_its_frame) {
  constexpr std::uint64_t kAnonymous = 0x40000;
  space.map({kAnonymous, kAnonymous + 0x1000, 0, std::nullopt});
  const Walked walked = walk(kLeaf, {kAnonymous + 6, 5, kThree + 1, 1, 2, kEnd + 1}, 77);
  BOOST_CHECK((walked.addresses() == Addresses{kLeaf, kAnonymous + 6, kThree + 1, kEnd + 1}));
  BOOST_CHECK(walked.stop == Stop::kEndOfStack);
  BOOST_CHECK(walked.frames[2].source() == FrameSource::kLeaf);
  // These are not stubs: a word that looks like a return address but has no caller; a caller
  // without rules; an exact address.
  BOOST_CHECK(walk(kLeaf, {kAnonymous + 6, 5, kThree + 1, 1, 2, 3}, 77).stop ==
              Stop::kNoUnwindInfo);
  BOOST_CHECK(walk(kLeaf, {kAnonymous + 6, 5, kBare + 1, kEnd + 1}, 77).stop ==
              Stop::kNoUnwindInfo);
  BOOST_CHECK(walk(kAnonymous + 6, {5, kThree + 1, 1, 2, kEnd + 1}, 77).stop ==
              Stop::kNoUnwindInfo);
}

BOOST_AUTO_TEST_CASE(a_stack_ends_with_the_trampoline_of_a_return_probe) {
  constexpr std::uint64_t kTrampoline = 0x40000;
  space.map({kTrampoline, kTrampoline + 0x1000, 0, std::nullopt});
  const Walked walked = walk(kLeaf, {kTrampoline, kThree + 1, 1, 2, kEnd + 1}, 77);
  BOOST_CHECK((walked.addresses() == Addresses{kLeaf, kTrampoline}));
  BOOST_TEST(walked.frames[1].is_exact());
  BOOST_CHECK(walked.stop == Stop::kBadReturnAddress);
  // A call may be the last instruction of a mapping before it.
  space.map({kTrampoline - 0x1000, kTrampoline, 0, std::nullopt});
  BOOST_TEST(!walk(kLeaf, {kTrampoline, kThree + 1, 1, 2, kEnd + 1}, 77).frames[1].is_exact());
}

BOOST_AUTO_TEST_CASE(an_address_that_looks_like_another_spaces_in_the_cache_is_no_frame) {
  const Words words = {kThree + 8, 1, 2, kEnd + 8};
  walk(kLeaf, words);
  AddressSpace other = fake.space();
  const std::uint64_t salts =
      RuleCache::salt_of(cache.generation(space)) ^ RuleCache::salt_of(cache.generation(other));
  const WalkStart start{Registers(FrameState{kLeaf, kFakeStack, 0})};
  const Walked walked =
      pe::testing::walk(walker, other, start, {(kThree + 8) ^ salts, 1, 2, kEnd + 8});
  BOOST_TEST(walked.frames.size() == 1U);
  BOOST_CHECK(walked.stop == Stop::kBadReturnAddress);
}

BOOST_AUTO_TEST_CASE(a_return_address_in_a_register_is_found_where_that_was_interrupted) {
  Registers registers(FrameState{kInRegister, kFakeStack, 0});
  registers.set(2, kThree + 4);
  const Walked first = walk(WalkStart{registers}, {1, 2, kEnd + 1});
  BOOST_CHECK((first.addresses() == Addresses{kInRegister, kThree + 4, kEnd + 1}));
  BOOST_CHECK((first.sps == Addresses{kFakeStack, kFakeStack, slot(3)}));
  // In a caller the register may have changed since the call, and the stack pointer must grow.
  registers.set(16, kLeaf);
  const Walked caller = walk(WalkStart{registers}, {kInRegister + 4, 1, 2, kEnd + 1});
  BOOST_CHECK((caller.addresses() == Addresses{kLeaf, kInRegister + 4}));
  BOOST_CHECK(caller.stop == Stop::kNoProgress);
  registers.set(2, kInRegister + 4);
  registers.set(16, kInRegister);
  BOOST_TEST(walk(WalkStart{registers}, {1, 2, kEnd + 1}).frames.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_signals_frame_does_not_stand_still) {
  FakeCode loop({code({DW_CFA_def_cfa_offset, 0, DW_CFA_register, 16, 2})}, 0);
  AddressSpace looping = loop.space();
  Registers registers(FrameState{kFakeCode + 4, kFakeStack, 0});
  registers.set(2, kFakeCode + 4);
  const Walked walked = pe::testing::walk(walker, looping, WalkStart{registers}, {1, 2, 3});
  BOOST_TEST(walked.frames.size() == 1U);
  BOOST_CHECK(walked.stop == Stop::kNoProgress);
  BOOST_CHECK(pe::testing::walk_slowly(looping, WalkStart{registers}, {1, 2, 3}) == walked);
}

BOOST_AUTO_TEST_CASE(a_signals_frame_may_say_anything) {
  const auto stop = [this](std::uint64_t sp, std::uint64_t ip) {
    const Walked walked = walk(kLeaf, {kSignal + 1, 0, sp, ip, 1, 2, kEnd + 1});
    BOOST_TEST(walked.frames.size() == 2U);
    return walked.stop;
  };
  BOOST_CHECK(stop(kFakeStack, kThree) == Stop::kNoProgress);
  BOOST_CHECK(stop(slot(1), kThree) == Stop::kNoProgress);
  for (const std::uint64_t sp : {slot(4), slot(1000), std::uint64_t{8}}) {
    BOOST_CHECK(stop(sp, ~std::uint64_t{0}) == Stop::kBadReturnAddress);
    BOOST_CHECK(stop(sp, std::uint64_t{1} << 61) == Stop::kBadReturnAddress);
  }
}

BOOST_AUTO_TEST_CASE(what_was_not_copied_ends_the_stack_and_can_be_gone_on_from) {
  const Words words = {kThree + 8, 1, 2, kThree + 9, 3, 4, kEnd + 8};
  const Walked cut = walk(kLeaf, Words(words.begin(), words.begin() + 5));
  BOOST_CHECK(cut.stop == Stop::kStackNotCaptured);
  BOOST_CHECK((cut.addresses() == Addresses{kLeaf, kThree + 8, kThree + 9}));
  const Walked rest = walk(WalkStart{Registers(cut.last), true}, words);
  BOOST_CHECK((rest.addresses() == Addresses{kThree + 9, kEnd + 8}));
  BOOST_CHECK(rest.stop == Stop::kEndOfStack);
}

BOOST_AUTO_TEST_CASE(a_stack_that_does_not_hold_the_stack_pointer_has_one_frame) {
  for (const std::uint64_t sp : {kFakeStack - 8, slot(4), ~std::uint64_t{0}}) {
    const Walked walked = walk(WalkStart{Registers(FrameState{kLeaf, sp, 0})}, {1, 2, 3});
    BOOST_TEST(walked.frames.size() == 1U);
    BOOST_CHECK(walked.stop == Stop::kStackNotCaptured);
  }
  BOOST_CHECK(walk(kLeaf, {}).stop == Stop::kStackNotCaptured);
}

BOOST_AUTO_TEST_CASE(a_return_address_outside_of_code_is_no_frame) {
  for (const std::uint64_t bad :
       {std::uint64_t{0x4000}, kFakeStack, ~std::uint64_t{0}, kThree + 8 + (std::uint64_t{1} << 48),
        kThree + 8 + (std::uint64_t{1} << 61)}) {
    const Walked walked = walk(kThree, {1, 2, bad, 4, 5, kEnd + 1});
    BOOST_CHECK((walked.addresses() == Addresses{kThree}));
    BOOST_CHECK(walked.stop == Stop::kBadReturnAddress);
  }
}

BOOST_AUTO_TEST_CASE(a_return_address_of_zero_is_the_end) {
  const Walked walked = walk(kThree, {1, 2, 0, 4, 5, 6});
  BOOST_CHECK((walked.addresses() == Addresses{kThree}));
  BOOST_CHECK(walked.stop == Stop::kEndOfStack);
}

BOOST_AUTO_TEST_CASE(a_return_address_of_zero_in_code_of_a_runtime_is_no_end) {
  space = AddressSpace(fake.source(), nullptr, nullptr, [](std::uint64_t) {
    return std::optional(Rule(RuleKind::kStackPointer, 3));
  });
  space.map(FakeCode::mapping());
  space.map({0x1000, 0x2000, 0, std::nullopt});
  const Walked walked = walk(0x1800, {1, 2, 0, 4, 5, 6});
  BOOST_CHECK((walked.addresses() == Addresses{0x1800}));
  BOOST_CHECK(walked.stop == Stop::kBadReturnAddress);
  BOOST_CHECK(walk(0x1800, {1, 2, kThree + 4, 4, 5, 0}).stop == Stop::kEndOfStack);
}

BOOST_AUTO_TEST_CASE(a_cfa_that_was_saved_below_the_copy_is_searched_in_it) {
  // CFA = *(rsp - 8) + 8
  FakeCode red(
      {code({DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 0x78, DW_OP_deref, DW_OP_plus_uconst, 8}),
       code({DW_CFA_undefined, 16})});
  space = red.space();
  const std::uint64_t caller = kFakeCode + 0x101;
  // The first word points at no return address, the second below itself.
  const Walked found = walk(kFakeCode, {slot(3), slot(0), slot(5), 12345, 6, caller, 7});
  BOOST_CHECK((found.addresses() == Addresses{kFakeCode, caller}));
  BOOST_CHECK(found.stop == Stop::kEndOfStack);
  BOOST_CHECK(found.frames[1].source() == FrameSource::kLeaf);
  const Walked lost = walk(kFakeCode, {slot(3), slot(0), 1, 12345, 6, caller, 7});
  BOOST_CHECK((lost.addresses() == Addresses{kFakeCode}));
  BOOST_CHECK(lost.stop == Stop::kStackNotCaptured);
}

BOOST_AUTO_TEST_CASE(frames_that_do_not_grow_end_the_stack) {
  BOOST_CHECK(walk(kBack, {kBack, kBack, kBack}).stop == Stop::kNoProgress);
  BOOST_CHECK(walk(kBased, {1, 2, 3}, kFakeStack - 16).stop == Stop::kNoProgress);
}

BOOST_AUTO_TEST_CASE(no_more_frames_than_there_is_room_for) {
  const Words words(100, kLeaf + 1);
  const Walked walked = walk(kLeaf, words, 0, 7);
  BOOST_TEST(walked.frames.size() == 7U);
  BOOST_CHECK(walked.stop == Stop::kTooDeep);
  BOOST_TEST(walked.last.sp == slot(7));  // of the frame that had no room
  BOOST_CHECK(walk(kLeaf, words, 0, 0).stop == Stop::kTooDeep);
  BOOST_CHECK(walk(kLeaf, words, 0, 101).stop == Stop::kStackNotCaptured);
}

BOOST_AUTO_TEST_CASE(code_without_rules_is_stepped_by_its_frame_pointer) {
  const Walked walked =
      walk(kBare, {1, 2, slot(5), kBare + 9, 4, slot(1), kThree + 5, 5, 6, kEnd + 1}, slot(2));
  BOOST_CHECK((walked.addresses() == Addresses{kBare, kBare + 9, kThree + 5, kEnd + 1}));
  BOOST_CHECK(walked.frames[1].source() == FrameSource::kFramePointer);
  BOOST_CHECK(walked.frames[2].source() == FrameSource::kFramePointer);
  BOOST_CHECK(walked.frames[3].source() == FrameSource::kCfi);
  BOOST_CHECK(walked.stop == Stop::kEndOfStack);
}

BOOST_AUTO_TEST_CASE(a_first_frame_without_rules_may_be_a_leaf) {
  for (const std::uint64_t fp : {std::uint64_t{0}, slot(3), slot(100), slot(2) + 1}) {
    const Walked walked = walk(kBare, {kThree + 4, 1, 2, kEnd + 4, 5, 6}, fp);
    BOOST_REQUIRE(walked.frames.size() > 1U);
    BOOST_CHECK(walked.frames[1] == Frame(kThree + 4, FrameSource::kLeaf, false));
  }
  // A caller cannot be a leaf.
  const Walked caller = walk(kLeaf, {kBare + 4, kThree + 4, 2, 3, kEnd + 4}, 8);
  BOOST_CHECK((caller.addresses() == Addresses{kLeaf, kBare + 4}));
  BOOST_CHECK(caller.stop == Stop::kNoUnwindInfo);
}

BOOST_AUTO_TEST_CASE(a_jump_to_nowhere_was_made_by_the_top_of_the_stack) {
  const Walked walked = walk(0, {kThree + 4, 1, 2, kEnd + 4});
  BOOST_CHECK((walked.addresses() == Addresses{0, kThree + 4, kEnd + 4}));
  BOOST_CHECK(walk(0x4000, {1, 2, 3}).stop == Stop::kBadReturnAddress);
  BOOST_TEST(walk(~std::uint64_t{0}, {kThree + 4, 1, 2, kEnd + 4}).frames.empty());
}

BOOST_AUTO_TEST_CASE(a_frame_pointer_of_zero_without_rules_is_the_end) {
  const Walked walked = walk(kLeaf, {kBare + 4, 1, 2}, 0);
  BOOST_CHECK((walked.addresses() == Addresses{kLeaf, kBare + 4}));
  BOOST_CHECK(walked.stop == Stop::kEndOfStack);
}

BOOST_AUTO_TEST_CASE(a_frame_pointer_of_zero_is_no_end_where_it_may_hold_anything) {
  // Here it belongs to an interrupted function, or to code that no table describes.
  BOOST_CHECK(walk(kBare, {1, 2, 3}, 0).stop == Stop::kNoUnwindInfo);
  const Words words = {kBare + 9, 1, 2};
  BOOST_CHECK(walk(kBare, words, 0).stop == Stop::kEndOfStack);
  FakeCode undescribed;
  AddressSpace other = undescribed.space();
  const auto start = [](std::uint64_t fp) {
    return WalkStart{Registers(FrameState{kBare, kFakeStack, fp})};
  };
  const Walked guessed = pe::testing::walk(walker, other, start(0), words);
  BOOST_CHECK((guessed.addresses() == Addresses{kBare, kBare + 9}));
  BOOST_CHECK(guessed.stop == Stop::kNoUnwindInfo);
  // Zero is the end if a chain of frame pointers leads to it.
  const Walked chained = pe::testing::walk(walker, other, start(slot(1)), {1, 0, kBare + 9});
  BOOST_CHECK((chained.addresses() == Addresses{kBare, kBare + 9}));
  BOOST_CHECK(chained.stop == Stop::kEndOfStack);
}

BOOST_AUTO_TEST_CASE(tables_that_cost_more_than_any_stack_is_worth_end_it) {
  const std::string switches = code({DW_CFA_expression, 7, 2, DW_OP_breg7, 8, DW_CFA_expression, 16,
                                     2, DW_OP_breg7, 16, DW_CFA_def_cfa_offset, 0});
  Words words;
  constexpr std::size_t kFrames = 60;
  for (std::size_t i = 0; i < kFrames; ++i)
    words.insert(words.end(), {0, slot(3 * (i + 1)), kFakeCode + 4});
  const auto walk_with = [&](std::size_t instructions) {
    FakeCode fake({std::string(instructions, static_cast<char>(DW_CFA_nop)) + switches});
    AddressSpace costly = fake.space();
    const WalkStart start{Registers(FrameState{kFakeCode, kFakeStack, 0})};
    const Walked walked = pe::testing::walk(walker, costly, start, words, nullptr, kFrames);
    BOOST_CHECK(pe::testing::walk_slowly(costly, start, words, kFrames) == walked);
    return walked;
  };
  BOOST_TEST(walk_with(100).frames.size() == kFrames);
  const Walked dear = walk_with(200'000);
  BOOST_TEST(dear.frames.size() < 12U);
  BOOST_CHECK(dear.stop == Stop::kNoUnwindInfo);
}

BOOST_AUTO_TEST_CASE(a_frame_pointer_above_the_copy_was_cut_off) {
  BOOST_CHECK(walk(kBare, {1, 2, 3}, slot(100)).stop == Stop::kStackNotCaptured);
  BOOST_CHECK(walk(kBare, {1, 2, 3}, slot(100) << 8).stop == Stop::kNoUnwindInfo);
}

BOOST_AUTO_TEST_CASE(registers_that_rules_do_not_keep_are_found_by_walking_again) {
  // kByR10 needs r10, which kSavesR10 has kept in its frame.
  const Words words = {kSavesR10 + 4, slot(7), 1, kByR10 + 4, 2, 3, kEnd + 4, 5};
  const Walked walked = walk(kLeaf, words);
  BOOST_CHECK((walked.addresses() == Addresses{kLeaf, kSavesR10 + 4, kByR10 + 4, kEnd + 4}));
  BOOST_CHECK(walked.stop == Stop::kEndOfStack);
  BOOST_TEST(walker.statistics().general_walks > 0U);
  // The stack pointers are known even though the walk needed all registers; the fixture compares
  // them with those of the walks with a history.
  BOOST_CHECK((walked.sps == Addresses{kFakeStack, slot(1), slot(4), slot(7)}));
}

BOOST_AUTO_TEST_CASE(the_first_frame_has_all_registers) {
  Registers registers(FrameState{kByR10, kFakeStack, 0});
  BOOST_CHECK(walk(WalkStart{registers}, {1, kEnd + 4}).stop == Stop::kNoUnwindInfo);
  const auto before = walker.statistics().general_walks;
  registers.set(10, slot(2));
  const Walked walked = walk(WalkStart{registers}, {1, kEnd + 4});
  BOOST_CHECK((walked.addresses() == Addresses{kByR10, kEnd + 4}));
  BOOST_TEST(walker.statistics().general_walks == before);
}

BOOST_AUTO_TEST_CASE(what_is_unmapped_is_not_found_in_the_cache) {
  const Words words = {kThree + 8, 1, 2, kEnd + 8};
  BOOST_TEST(walk(kLeaf, words).frames.size() == 3U);
  space.unmap(kThree, kThree + 0x100);
  BOOST_TEST(walk(kLeaf, words).frames.size() == 1U);
}

BOOST_AUTO_TEST_CASE(look_ups_and_misses_are_counted) {
  const Words words = {kThree + 8, 1, 2, kEnd + 8};
  pe::testing::walk(walker, space, WalkStart{Registers(FrameState{kLeaf, kFakeStack, 0})}, words);
  BOOST_TEST(cache.statistics().look_ups == 3U);
  BOOST_TEST(cache.statistics().misses == 3U);
  pe::testing::walk(walker, space, WalkStart{Registers(FrameState{kLeaf, kFakeStack, 0})}, words);
  BOOST_TEST(cache.statistics().look_ups == 6U);
  BOOST_TEST(cache.statistics().misses == 3U);
}

BOOST_AUTO_TEST_CASE(every_reason_has_a_name_of_its_own) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(Stop::kTooDeep); ++i) {
    names.push_back(to_string(static_cast<Stop>(i)));
    BOOST_TEST(std::count(names.begin(), names.end(), names.back()) == 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
