// SPDX-License-Identifier: MIT
#include "languages/common/script_frames.h"

#include <boost/test/unit_test.hpp>
#include <vector>

using namespace pe;
using languages::kEndsCall;
using languages::KeptScript;
using languages::ScriptMerger;
using languages::ScriptStack;

BOOST_AUTO_TEST_SUITE(script_frames)

namespace {

using Chain = std::vector<std::uint64_t>;

// Frames: of the interpreter's loop, and others.
constexpr std::uint64_t kLoop = 0x1100, kMain = 0x2000, kCall = 0x2100, kLeaf = 0x2200;
constexpr std::uint64_t kUser = PERF_CONTEXT_USER, kKernel = PERF_CONTEXT_KERNEL;
// Frames of Python, far from each other.
constexpr std::uint64_t a = 0xa0, b = 0xb0, c = 0xc0;
constexpr std::uint64_t kNone = 0;

languages::ScriptStack script(std::vector<std::uint64_t> words, bool is_complete = true) {
  return {.loop = {{0x1000, 0x1800}}, .words = std::move(words), .is_complete = is_complete};
}

Chain merged(const Chain& chain, const languages::ScriptStack& script, bool is_complete = true) {
  languages::ScriptMerger merger;
  const auto out = merger.merge(chain, is_complete, script);
  return {out.begin(), out.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_frames_of_a_call_replace_the_loop) {
  BOOST_TEST(merged({kUser, kLeaf, kLoop, kCall, kLoop, kMain},
                    script({a, b | languages::kEndsCall, c | languages::kEndsCall})) ==
             Chain({kUser, kLeaf, a + 1, b + 1, kCall, c + 1, kMain}));
}

BOOST_AUTO_TEST_CASE(the_innermost_frame_has_its_exact_address) {
  BOOST_TEST(merged({kKernel, 0xffffffff81000000, kUser, kLoop, kMain},
                    script({a, b | languages::kEndsCall})) ==
             Chain({kKernel, 0xffffffff81000000, kUser, a, b + 1, kMain}));
}

BOOST_AUTO_TEST_CASE(a_stack_without_python_stays) {
  BOOST_TEST(merged({kUser, kLoop, kMain}, script({})) == Chain({kUser, kLoop, kMain}));
}

BOOST_AUTO_TEST_CASE(a_loop_that_has_only_started_stays_native) {
  BOOST_TEST(merged({kUser, kLoop, kCall, kLoop, kMain}, script({a | languages::kEndsCall})) ==
             Chain({kUser, kLoop, kCall, a + 1, kMain}));
  BOOST_TEST(merged({kUser, kLoop, kCall, kLoop, kMain},
                    script({kNone | languages::kEndsCall, a | languages::kEndsCall})) ==
             Chain({kUser, kCall, a + 1, kMain}));
}

BOOST_AUTO_TEST_CASE(a_call_without_a_loop_joins_the_innermost) {
  BOOST_TEST(merged({kUser, kLeaf, kLoop, kMain},
                    script({a | languages::kEndsCall, b | languages::kEndsCall})) ==
             Chain({kUser, kLeaf, a + 1, b + 1, kMain}));
}

BOOST_AUTO_TEST_CASE(frames_of_a_loop_that_has_not_started_follow_the_complete_stack) {
  // A thread's first function has no callers.  The native leaf becomes a caller.
  BOOST_TEST(merged({kUser, kLeaf, kMain},
                    script({a, b | languages::kEndsCall, c | languages::kEndsCall})) ==
             Chain({kUser, a, b + 1, c + 1, kLeaf + 1, kMain}));
  BOOST_TEST(merged({kKernel, 0xffffffff81000000, kUser, kLeaf, kMain},
                    script({a | languages::kEndsCall})) ==
             Chain({kKernel, 0xffffffff81000000, kUser, a, kLeaf + 1, kMain}));
  BOOST_TEST(merged({kUser, kLeaf, kUser, kMain}, script({kNone | languages::kEndsCall})) ==
             Chain({kUser, kLeaf, kUser, kMain}));
}

BOOST_AUTO_TEST_CASE(python_frames_continue_an_incomplete_stack) {
  BOOST_TEST(merged({kUser, kLeaf, kLoop, kCall},
                    script({a | languages::kEndsCall, b | languages::kEndsCall, c}),
                    false) == Chain({kUser, kLeaf, a + 1, kCall, b + 1, c + 1}));
  BOOST_TEST(merged({kUser, kLeaf}, script({a | languages::kEndsCall}), false) ==
             Chain({kUser, kLeaf, a + 1}));
}

BOOST_AUTO_TEST_CASE(a_cut_python_stack_ends_where_it_was_cut) {
  BOOST_TEST(merged({kUser, kLeaf, kLoop, kCall, kLoop, kMain},
                    script({a | languages::kEndsCall}, false)) == Chain({kUser, kLeaf, a + 1}));
  BOOST_TEST(merged({kUser, kLeaf, kLoop, kCall, kLoop, kMain},
                    script({a | languages::kEndsCall, b}, false)) ==
             Chain({kUser, kLeaf, a + 1, kCall, b + 1}));
}

BOOST_AUTO_TEST_CASE(calls_on_another_native_stack_continue_the_chain) {
  BOOST_TEST(merged({kUser, kLeaf, kLoop, kMain},
                    script({a | languages::kEndsCall, kNone, b, c | languages::kEndsCall})) ==
             Chain({kUser, kLeaf, a + 1, kMain, b + 1, c + 1}));
  BOOST_TEST(merged({kUser, kLeaf, kMain}, script({a, kNone, c | languages::kEndsCall})) ==
             Chain({kUser, a, kLeaf + 1, kMain, c + 1}));
  BOOST_TEST(merged({kUser, kLoop, kCall, kLoop, kMain},
                    script({a | languages::kEndsCall, b, kNone, c | languages::kEndsCall})) ==
             Chain({kUser, a, kCall, b + 1, kMain, c + 1}));
}

BOOST_AUTO_TEST_CASE(a_chain_without_a_users_part_gets_one) {
  BOOST_TEST(merged({kKernel, 0xffffffff81000000}, script({a, b | languages::kEndsCall}), false) ==
             Chain({kKernel, 0xffffffff81000000, kUser, a, b + 1}));
}

BOOST_AUTO_TEST_CASE(only_complete_stacks_that_differ_are_counted) {
  languages::ScriptMerger merger;
  merger.merge(Chain{kUser, kLoop}, true, script({a | languages::kEndsCall}));
  merger.merge(Chain{kUser, kLoop, kLoop}, true, script({a | languages::kEndsCall}));
  merger.merge(Chain{kUser, kLoop, kLoop}, false, script({a | languages::kEndsCall}));
  BOOST_TEST(merger.counts().stacks == 3U);
  BOOST_TEST(merger.counts().mismatched == 1U);
}

BOOST_AUTO_TEST_CASE(a_record_keeps_the_stack_for_its_sample) {
  const languages::ScriptStack stack = script({a, b | languages::kEndsCall}, false);
  std::vector<std::byte> bytes;
  languages::add_script_record(stack, 77, bytes);
  const auto record = stream::view_record(bytes);
  BOOST_TEST(languages::time_of_script(record).value() == 77U);
  languages::KeptScript kept;
  BOOST_TEST(kept.take(record));
  BOOST_TEST(kept.stack().words == stack.words);
  BOOST_TEST(kept.stack().loop.front().end == 0x1800U);
  BOOST_TEST(!kept.stack().is_complete);
  kept.forget();
  BOOST_TEST(kept.stack().empty());
}

BOOST_AUTO_TEST_CASE(a_stack_too_large_for_a_record_is_cut) {
  std::vector<std::byte> bytes;
  languages::add_script_record(script(Chain(9000, a)), 1, bytes);
  languages::KeptScript kept;
  BOOST_TEST(kept.take(stream::view_record(bytes)));
  BOOST_TEST(kept.stack().words.size() > 8000U);
  BOOST_TEST(!kept.stack().is_complete);
}

BOOST_AUTO_TEST_SUITE_END()
