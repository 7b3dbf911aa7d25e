// SPDX-License-Identifier: MIT
#include "unwind/stacks/sample_unwinder.h"

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/own_sample.h"

using namespace pe;
using testing::Caught;

BOOST_AUTO_TEST_SUITE(sample_unwinder)

namespace {

/// Enough frames of at least 200 bytes that a copy of 4 KiB cannot hold them all.
__attribute__((noinline)) void dive(Caught& caught, int depth) {
  volatile char frame[200];
  frame[depth] = 1;
  if (depth == 0)
    testing::catch_self(caught);
  else
    dive(caught, depth - 1);
  frame[0] = frame[depth];
}

/// The same with small frames.
__attribute__((noinline)) void dive_far(Caught& caught, std::size_t depth) {
  volatile std::size_t left = depth;
  if (depth == 0)
    testing::catch_self(caught);
  else
    dive_far(caught, depth - 1);
  left = left + 1;
}

Caught caught_deep() {
  Caught caught;
  dive(caught, 60);
  return caught;
}

constexpr std::size_t kWhole = 60'000;
constexpr std::size_t kCut = 4'096;

class OwnProcess {
 public:
  explicit OwnProcess(bool may_continue = true, unwind::RuntimeCode* runtime = nullptr)
      : unwinder_(history_, {.may_continue = may_continue, .runtime_code = runtime}) {
    testing::add_own_mappings(history_);
  }

  std::vector<std::uint64_t> chain(const std::string& record, const unwind::Behind& behind = {}) {
    const auto sample = parse(record);
    const auto chain = unwinder_.call_chain(sample, testing::own_attr(), behind);
    return {chain.begin(), chain.end()};
  }
  auto wanted(const std::string& record) {
    return unwinder_.wanted_memory(parse(record), testing::own_attr());
  }
  [[nodiscard]] std::uint16_t misc_of_walk() const { return unwinder_.misc_of_walk(); }
  std::size_t used(const std::string& record) {
    return unwinder_.used_of_copy(parse(record), testing::own_attr());
  }
  void exec() {
    stream::RecordBuilder builder;
    builder.begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC)
        .add(testing::kOwnPid)
        .add(testing::kOwnPid)
        .add_string("other")
        .pad();
    history_.apply(stream::view_record(std::as_bytes(std::span(builder.finish()))));
    unwinder_.follow();
  }
  const unwind::StackCounts& counts() { return unwinder_.counts(); }

 private:
  static stream::Sample parse(const std::string& record) {
    const auto sample = stream::parse_sample(stream::view_record(std::as_bytes(std::span(record))),
                                             testing::own_attr());
    BOOST_REQUIRE(sample.has_value());
    return *sample;
  }

  stream::History history_;
  unwind::SampleUnwinder unwinder_;
};

bool is_empty(const unwind::MemoryRange& range) { return range.start == range.end; }

/// Replaces a frame by two functions.
class FakeRuntime : public unwind::RuntimeCode {
 public:
  explicit FakeRuntime(std::size_t replaced) : replaced_(replaced) {}

  bool is_in(std::uint32_t pid) override { return pid == testing::kOwnPid; }
  std::optional<unwind::Rule> rule(std::uint32_t /*pid*/, std::uint64_t /*avma*/) override {
    return std::nullopt;
  }
  bool are_outdated(std::uint32_t /*pid*/, std::span<const unwind::Frame> frames) override {
    walked_ = frames.size();
    return std::exchange(is_outdated, false);
  }
  bool functions(std::uint32_t /*pid*/, const WalkedFrame& walked,
                 const unwind::StackView& /*stack*/,
                 std::vector<std::uint64_t>& addresses) override {
    BOOST_TEST((walked.registers != nullptr) == states.empty());
    states.push_back(walked.state);
    if (states.size() != replaced_ + 1)
      return false;
    addresses = {1000, 2000};
    return true;
  }

  bool is_outdated = true;
  std::vector<unwind::FrameState> states;  ///< of the frames, the innermost first
  [[nodiscard]] std::size_t walked() const noexcept { return walked_; }

 private:
  std::size_t replaced_, walked_ = 0;
};

/// The addresses of a chain, without the marks where a stack was continued.
std::vector<std::uint64_t> frames_of(std::vector<std::uint64_t> chain) {
  std::erase(chain, PERF_CONTEXT_USER);
  return chain;
}

/// The process's memory after a copy of `copied` bytes, unchanged since the copy.
unwind::Behind behind_cut(const Caught& caught, std::size_t copied = kCut) {
  return {std::as_bytes(std::span(caught.stack)).subspan(copied), copied};
}

/// The same stack, `bytes` bytes higher.
Caught moved(Caught caught, std::uint64_t bytes) {
  const std::uint64_t start = caught.sp, end = start + caught.stack.size() * 8;
  const auto move = [&](auto& word) {
    if (const auto value = static_cast<std::uint64_t>(word); value >= start && value < end)
      word += bytes;
  };
  for (auto& word : caught.stack)
    move(word);
  for (auto& value : caught.context.uc_mcontext.gregs)
    move(value);
  caught.sp += bytes;
  return caught;
}

auto marks_in(const std::vector<std::uint64_t>& chain) {
  return std::count(chain.begin(), chain.end(), PERF_CONTEXT_USER);
}

}  // namespace

BOOST_AUTO_TEST_CASE(functions_replace_the_frame_of_a_runtime) {
  const Caught caught = caught_deep();
  const std::string record = testing::sample_of(caught, kWhole);
  const auto plain = frames_of(OwnProcess().chain(record));
  for (const std::size_t replaced : {std::size_t{0}, std::size_t{5}}) {
    FakeRuntime runtime(replaced);
    OwnProcess process(true, &runtime);
    const auto chain = frames_of(process.chain(record));
    auto expected = plain;
    // All but the innermost have one more, as return addresses have.
    expected[replaced] = 1000 + (replaced == 0 ? 0U : 1U);
    expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(replaced) + 1, 2001);
    BOOST_TEST(chain == expected, boost::test_tools::per_element());
    BOOST_TEST(!runtime.is_outdated);
    BOOST_TEST(runtime.walked() == plain.size());
    BOOST_TEST_REQUIRE(runtime.states.size() == plain.size());
    for (std::size_t i = 1; i < runtime.states.size(); ++i)
      BOOST_TEST(runtime.states[i].sp > runtime.states[i - 1].sp);
  }
}

BOOST_AUTO_TEST_CASE(a_whole_copy_gives_the_frames_that_a_walk_of_the_stack_gives) {
  const Caught caught = caught_deep();
  testing::OwnSpace space;
  unwind::RuleCache cache;
  unwind::Walker walker(cache);
  std::vector<unwind::Frame> frames(1000);
  const auto walked =
      walker.walk(space.space(), {testing::registers_of(caught.context)},
                  unwind::StackView(caught.sp, std::as_bytes(std::span(caught.stack))), frames);
  std::vector<std::uint64_t> wanted{PERF_CONTEXT_USER};
  for (std::size_t i = 0; i < walked.frames; ++i)
    wanted.push_back(frames[i].address());

  OwnProcess process;
  BOOST_TEST(process.chain(testing::sample_of(caught, kWhole)) == wanted,
             boost::test_tools::per_element());
  BOOST_TEST(wanted.size() > 62u);
  BOOST_TEST(process.counts().complete == 1u);
  BOOST_TEST(process.misc_of_walk() == stream::kMiscComplete);
  BOOST_TEST(unwind::describe(process.counts()) == "100.0 % of stacks complete");
}

BOOST_AUTO_TEST_CASE(the_kernels_part_comes_first_and_stays_where_there_is_no_copy) {
  OwnProcess process;
  const std::vector<std::uint64_t> kernel{PERF_CONTEXT_KERNEL, 0xffffffff81000001};
  const Caught caught = caught_deep();
  const auto both =
      process.chain(testing::sample_of(caught, kWhole, PERF_SAMPLE_REGS_ABI_64, kernel));
  BOOST_TEST(std::vector(both.begin(), both.begin() + 2) == kernel,
             boost::test_tools::per_element());
  BOOST_TEST(both.at(2) == PERF_CONTEXT_USER);
  const auto alone =
      process.chain(testing::sample_of(caught, 0, PERF_SAMPLE_REGS_ABI_NONE, kernel));
  BOOST_TEST(alone == kernel, boost::test_tools::per_element());
  BOOST_TEST(process.misc_of_walk() == 0u);
  BOOST_TEST(process.counts().stacks == 1u);
}

BOOST_AUTO_TEST_CASE(a_stack_that_nobody_has_seen_whole_stays_cut) {
  OwnProcess process;
  const auto chain = process.chain(testing::sample_of(caught_deep(), kCut));
  BOOST_TEST(chain.size() > 5u);
  BOOST_TEST(chain.size() < 40u);
  BOOST_TEST(process.counts().complete == 0u);
  BOOST_TEST(process.misc_of_walk() == stream::kMiscIncomplete);
  BOOST_TEST(unwind::describe(process.counts()) == "0.0 % of stacks complete; 1 cut at 4 KiB");
}

BOOST_AUTO_TEST_CASE(a_copy_is_used_whole_until_the_threads_root_is_known_to_be_in_it) {
  Caught caught = caught_deep();
  constexpr std::size_t kBehindWords = 1000;  // words of another mapping
  caught.stack.resize(caught.stack.size() + kBehindWords);
  const std::size_t bytes = caught.stack.size() * 8;
  const std::string whole = testing::sample_of(caught, bytes);
  OwnProcess process;
  BOOST_TEST(process.used(whole) == bytes);
  process.chain(whole);
  BOOST_TEST(process.used(whole) > kCut);
  BOOST_TEST(process.used(whole) <= bytes - 8 * kBehindWords);
  // the root is not in this copy
  BOOST_TEST(process.used(testing::sample_of(caught, kCut)) == kCut);
}

BOOST_AUTO_TEST_CASE(a_cut_stack_goes_on_as_the_threads_last_one_and_says_so) {
  Caught caught = caught_deep();
  const std::size_t bytes = caught.stack.size() * 8;
  OwnProcess process;
  const auto whole = process.chain(testing::sample_of(caught, bytes));
  const auto cut = process.chain(testing::sample_of(caught, kCut));
  BOOST_TEST(frames_of(cut) == frames_of(whole), boost::test_tools::per_element());
  BOOST_TEST(marks_in(whole) == 1);
  BOOST_TEST(marks_in(cut) == 2);
  BOOST_TEST(process.counts().from_earlier == 1u);
  BOOST_TEST(unwind::describe(process.counts()) ==
             "100.0 % of stacks complete; 1 continued as earlier stacks");

  OwnProcess other(false);
  other.chain(testing::sample_of(caught, bytes));
  const auto left = other.chain(testing::sample_of(caught, kCut));
  BOOST_TEST(left.size() < whole.size());
  BOOST_TEST(marks_in(left) == 1);
  BOOST_TEST(other.counts().cut == 1u);
}

BOOST_AUTO_TEST_CASE(a_body_that_has_changed_is_not_continued) {
  Caught caught = caught_deep();
  OwnProcess process;
  process.chain(testing::sample_of(caught, caught.stack.size() * 8));
  // Changes the local variables of dive() in all of its frames, and so the frame at the edge of the
  // copy.
  for (std::uint64_t& word : caught.stack)
    word = word == 0 ? 0x5a5a5a5a : word;
  process.chain(testing::sample_of(caught, kCut));
  BOOST_TEST(process.counts().from_earlier == 0u);
  BOOST_TEST(process.counts().cut == 1u);
}

BOOST_AUTO_TEST_CASE(what_follows_the_copy_in_memory_completes_a_stack) {
  const Caught caught = caught_deep();
  const std::string cut = testing::sample_of(caught, kCut);
  OwnProcess process;
  const auto wanted = process.wanted(cut);
  BOOST_TEST(wanted.start == caught.sp);
  BOOST_TEST(wanted.end > caught.sp + kCut);
  const auto chain = process.chain(cut, behind_cut(caught));
  OwnProcess other;
  BOOST_TEST(frames_of(chain) == frames_of(other.chain(testing::sample_of(caught, kWhole))),
             boost::test_tools::per_element());
  BOOST_TEST(marks_in(chain) == 2);
  BOOST_TEST(process.counts().from_process == 1u);
  // From now on the unwinder knows how far the thread's stack reaches.
  const auto known = process.wanted(cut);
  BOOST_TEST(known.end <= caught.sp + caught.stack.size() * 8 + 1024);
}

BOOST_AUTO_TEST_CASE(a_stack_with_too_many_frames_is_not_reported_as_cut) {
  Caught caught;
  dive_far(caught, unwind::SampleUnwinder::kMaxFrames);
  OwnProcess process;
  process.chain(testing::sample_of(caught, kCut), behind_cut(caught));
  BOOST_TEST(process.counts().cut == 0u);
  BOOST_TEST_REQUIRE(process.counts().ended.size() == 1u);
  BOOST_CHECK(process.counts().ended.begin()->first.second == unwind::Stop::kTooDeep);
}

BOOST_AUTO_TEST_CASE(a_thread_with_too_many_frames_is_not_read_each_time) {
  Caught caught;
  dive_far(caught, unwind::SampleUnwinder::kMaxFrames);
  OwnProcess process;
  const auto record = testing::sample_of(caught, kCut);
  BOOST_TEST(!is_empty(process.wanted(record)));
  process.chain(record, behind_cut(caught));
  int wanted = 0;
  for (int i = 0; i < 64; ++i)
    wanted += is_empty(process.wanted(record)) ? 0 : 1;
  BOOST_TEST(wanted == 4);
  process.chain(record);
  BOOST_TEST(process.counts().cut == 0u);  // it is as deep as before

  // The thread may have returned since: the memory leads to the end of its stack.
  const Caught other = caught_deep();
  const auto shallow = testing::sample_of(other, kCut);
  BOOST_TEST(!is_empty(process.wanted(shallow)));
  process.chain(shallow, behind_cut(other));
  BOOST_TEST(!is_empty(process.wanted(record)));
}

BOOST_AUTO_TEST_CASE(memory_is_not_believed_if_the_outermost_copied_frame_has_changed) {
  const Caught caught = caught_deep();
  OwnProcess process;
  unwind::Behind behind = behind_cut(caught);
  behind.agreed_bytes = unwind::SampleUnwinder::kLeastAgreementBytes - 8;
  process.chain(testing::sample_of(caught, kCut), behind);
  BOOST_TEST(process.counts().cut == 1u);
  BOOST_TEST(process.counts().from_process == 0u);
}

BOOST_AUTO_TEST_CASE(memory_after_a_short_copy_is_believed_if_the_whole_copy_is_unchanged) {
  const Caught caught = caught_deep();
  OwnProcess process, other;
  constexpr std::size_t kShort = 64;
  const std::string cut = testing::sample_of(caught, kShort);
  const auto wanted = process.wanted(cut);
  BOOST_TEST(wanted.start == caught.sp);
  BOOST_TEST(wanted.end > caught.sp + kShort);
  unwind::Behind behind = behind_cut(caught, kShort);
  behind.agreed_bytes -= 8;
  process.chain(cut, behind);
  BOOST_TEST(process.counts().from_process == 0u);
  const auto chain = process.chain(cut, behind_cut(caught, kShort));
  BOOST_TEST(frames_of(chain) == frames_of(other.chain(testing::sample_of(caught, kWhole))),
             boost::test_tools::per_element());
  BOOST_TEST(process.counts().from_process == 1u);
}

BOOST_AUTO_TEST_CASE(no_memory_is_wanted_after_an_empty_copy) {
  OwnProcess process;
  const auto wanted = process.wanted(testing::sample_of(caught_deep(), 0));
  BOOST_TEST(wanted.start == wanted.end);
}

BOOST_AUTO_TEST_CASE(memory_that_leads_nowhere_leaves_the_stack_cut) {
  const Caught caught = caught_deep();
  OwnProcess process, other;
  Caught changed = caught;
  for (std::size_t i = kCut / 8; i < changed.stack.size(); ++i)
    changed.stack[i] = 1;
  const std::string cut = testing::sample_of(caught, kCut);
  BOOST_TEST(process.chain(cut, behind_cut(changed)) == other.chain(cut),
             boost::test_tools::per_element());
  BOOST_TEST(process.counts().cut == 1u);
  BOOST_TEST(process.counts().ended.empty());
}

BOOST_AUTO_TEST_CASE(memory_that_ends_in_another_place_than_the_thread_began_is_not_believed) {
  const Caught caught = caught_deep();
  OwnProcess process;
  const std::string cut = testing::sample_of(caught, kCut);
  process.chain(testing::sample_of(caught, kWhole));
  // Zeros look like the end of a stack.
  Caught changed = caught;
  for (std::size_t i = kCut / 8; i < changed.stack.size(); ++i)
    changed.stack[i] = 0;
  process.chain(cut, behind_cut(changed));
  BOOST_TEST(process.counts().from_process == 0u);
  BOOST_TEST(process.counts().cut == 1u);
  process.chain(cut, behind_cut(caught));
  BOOST_TEST(process.counts().from_process == 1u);
}

BOOST_AUTO_TEST_CASE(another_place_that_is_found_twice_is_a_stack_of_its_own) {
  const Caught caught = caught_deep();
  OwnProcess process;
  process.chain(testing::sample_of(caught, kWhole));
  Caught coroutine = caught;
  for (std::size_t i = kCut / 8; i < coroutine.stack.size(); ++i)
    coroutine.stack[i] = 0;  // a zero ends a stack
  const std::string cut = testing::sample_of(coroutine, kCut);
  process.chain(cut, behind_cut(coroutine));
  process.chain(cut, behind_cut(coroutine));
  BOOST_TEST(process.counts().from_process == 1u);
}

BOOST_AUTO_TEST_CASE(the_program_begins_near_where_its_dynamic_linker_began) {
  const Caught caught = caught_deep();
  for (const std::uint64_t bytes : {16, 1024, 1040}) {
    OwnProcess process;
    process.chain(testing::sample_of(caught, kWhole));
    const Caught other = moved(caught, bytes);
    process.chain(testing::sample_of(other, kCut), behind_cut(other));
    BOOST_TEST(process.counts().from_process == (bytes <= 1024 ? 1u : 0u));
  }
}

BOOST_AUTO_TEST_CASE(the_stack_itself_is_believed_before_an_earlier_one) {
  const Caught caught = caught_deep();
  OwnProcess process;
  process.chain(testing::sample_of(caught, kWhole));
  process.chain(testing::sample_of(caught, kCut), behind_cut(caught));
  BOOST_TEST(process.counts().from_process == 1u);
  BOOST_TEST(process.counts().from_earlier == 0u);
}

BOOST_AUTO_TEST_CASE(a_copy_that_reaches_the_root_needs_no_memory) {
  const Caught caught = caught_deep();
  OwnProcess process;
  const std::string whole = testing::sample_of(caught, kWhole);
  process.chain(whole);
  const auto wanted = process.wanted(whole);
  BOOST_TEST(wanted.start == wanted.end);
}

BOOST_AUTO_TEST_CASE(a_copy_that_ends_before_the_root_is_known_to_go_on) {
  const Caught caught = caught_deep();
  OwnProcess process;
  process.chain(testing::sample_of(caught, kWhole));
  // As if the program had never touched a page after the copy: fewer bytes were copied than
  // requested.
  Caught holey = caught;
  holey.stack.resize(kCut / 8);
  const std::string early = testing::sample_of(holey, kWhole);
  const auto wanted = process.wanted(early);
  BOOST_TEST(wanted.start == caught.sp);
  process.chain(early, behind_cut(caught));
  BOOST_TEST(process.counts().complete == 2u);
}

BOOST_AUTO_TEST_CASE(another_program_in_the_process_has_other_code) {
  const Caught caught = caught_deep();
  OwnProcess process;
  process.chain(testing::sample_of(caught, kWhole));
  process.exec();
  const auto chain = process.chain(testing::sample_of(caught, kWhole));
  BOOST_TEST(chain.size() == 2u);
  BOOST_TEST(process.counts().complete == 1u);
  BOOST_TEST(unwind::describe(process.counts()).find("ended in [unknown]") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_program_that_is_being_replaced_has_no_stack) {
  Caught caught = caught_deep();
  caught.stack.clear();
  OwnProcess process;
  const std::vector<std::uint64_t> kernel{PERF_CONTEXT_KERNEL, 0xffffffff81000000};
  const auto record = [&] {
    return testing::sample_of(caught, kWhole, PERF_SAMPLE_REGS_ABI_64, kernel);
  };
  BOOST_TEST(process.chain(record()).size() == 4u);
  BOOST_TEST(process.misc_of_walk() == stream::kMiscIncomplete);
  caught.context.uc_mcontext.gregs[REG_RAX] = -ENOSYS;  // in a system call
  BOOST_TEST(process.chain(record()) == kernel, boost::test_tools::per_element());
  BOOST_TEST(process.misc_of_walk() == 0u);
  BOOST_TEST(process.counts().stacks == 1u);
}

BOOST_AUTO_TEST_CASE(a_thread_that_has_run_nothing_has_a_complete_stack) {
  Caught caught = caught_deep();
  caught.stack.assign(caught.stack.size(), 1);
  OwnProcess process;
  process.chain(testing::sample_of(caught, kWhole));
  BOOST_TEST(process.misc_of_walk() == stream::kMiscIncomplete);
  for (int number = 0; number <= REG_RIP; ++number)
    if (number != REG_RSP && number != REG_RIP)
      caught.context.uc_mcontext.gregs[number] = 0;
  BOOST_TEST(process.chain(testing::sample_of(caught, kWhole)).size() == 2u);
  BOOST_TEST(process.misc_of_walk() == stream::kMiscComplete);
  BOOST_TEST(process.counts().complete == 1u);
}

BOOST_AUTO_TEST_CASE(a_32_bit_program_is_counted_and_not_walked) {
  OwnProcess process;
  const auto chain =
      process.chain(testing::sample_of(caught_deep(), kWhole, PERF_SAMPLE_REGS_ABI_32));
  BOOST_TEST(chain.size() == 2u);  // the interrupted address is known
  BOOST_TEST(process.counts().foreign == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
