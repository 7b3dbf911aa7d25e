// Walks of our own stacks in special situations: an exception in flight, a signal handler on an
// alternate stack.
// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unwind.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <stdexcept>
#include <vector>

#include "call_paths.h"
#include "support/witness.h"

BOOST_AUTO_TEST_SUITE(own_special_stack)

namespace {

using namespace pe::unwind;
using pe::testing::single_step;
using pe::testing::Witness;

volatile int sink;

/// Its destructor runs in a landing pad.
struct Cleanup {
  explicit Cleanup(Witness* witness) : witness(witness) {}
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;
  __attribute__((noinline)) ~Cleanup() {
    if (witness != nullptr)
      witness->compare_here();
    sink = sink + 1;
  }
  Witness* witness;
};

__attribute__((noinline)) void throw_from(int depth, Witness* witness) {
  const Cleanup cleanup(witness);
  if (depth == 0)
    throw std::runtime_error("in flight");
  throw_from(depth - 1, witness);
  sink = sink + 1;
}

__attribute__((noinline)) void throw_and_catch(Witness* witness) {
  try {
    throw_from(3, witness);
  } catch (const std::runtime_error&) {
    if (witness != nullptr)
      witness->compare_here();
  }
  sink = sink + 1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(landing_pads_and_catch_clauses_are_walked_as_libgcc_does) {
  const auto witness = std::make_unique<Witness>();
  throw_and_catch(witness.get());
  BOOST_TEST(witness->compared() == 5U);
  BOOST_TEST(witness->all_same());
}

namespace {

/// Walks stacks that should all have the outer frames of the first one.
class RootCheck {
 public:
  void walk(const ucontext_t& context) {
    const WalkStart start{pe::testing::registers_of(context)};
    const auto view = pe::testing::copy_of_stack(start.registers.state().sp, end_, copy_);
    const auto frames = frames_of(walker_.walk(own_.space(), start, view, ours_));
    const auto again = frames_of(walker_.walk(own_.space(), start, view, ours_, history_));
    const auto slow = frames_of(walk_with_all_registers(own_.space(), start, view, ours_));
    ++walked_;
    differing_ += frames != again || frames != slow ? 1 : 0;
    if (root_.empty())
      root_.assign(frames.begin() + 1, frames.end());
    const bool is_whole =
        frames.size() >= root_.size() && std::equal(root_.rbegin(), root_.rend(), frames.rbegin());
    incomplete_ += is_whole ? 0 : 1;
    incomplete_elsewhere_ += is_whole || is_in_libgcc(context) ? 0 : 1;
  }
  [[nodiscard]] std::size_t walked() const { return walked_; }
  [[nodiscard]] std::size_t differing() const { return differing_; }
  [[nodiscard]] std::size_t incomplete() const { return incomplete_; }
  /// The incomplete walks that did not start in libgcc.
  [[nodiscard]] std::size_t incomplete_elsewhere() const { return incomplete_elsewhere_; }

 private:
  bool is_in_libgcc(const ucontext_t& context) {
    const auto of_libgcc = reinterpret_cast<std::uint64_t>(&_Unwind_RaiseException);
    const auto ip = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
    return own_.space().find(ip) == own_.space().find(of_libgcc);
  }
  std::vector<Frame> frames_of(const WalkResult& result) {
    return {ours_.begin(), ours_.begin() + static_cast<std::ptrdiff_t>(result.frames)};
  }

  pe::testing::OwnSpace own_;
  RuleCache cache_;
  Walker walker_{cache_};
  ThreadHistory history_;
  std::uint64_t end_ = pe::testing::own_stack_end();
  std::vector<std::uint64_t> copy_;
  std::vector<Frame> ours_ = std::vector<Frame>(256), root_;
  std::size_t walked_ = 0, differing_ = 0, incomplete_ = 0, incomplete_elsewhere_ = 0;
};

}  // namespace

// Does not compare with libgcc's backtrace, which crashes in some of these places.
//
// To enter a landing pad, libgcc overwrites the registers that _Unwind_Resume has saved: it writes
// the registers of the landing pad's frame and its return address.  Then it leaves _Unwind_Resume
// with `mov rcx, rsp; pop rcx; jmp rcx`.  During about a hundred instructions, no table describes
// where the caller is.
BOOST_AUTO_TEST_CASE(each_instruction_of_throwing_is_walked_to_the_root) {
  const auto check = std::make_unique<RootCheck>();
  throw_and_catch(nullptr);  // does the work that is done only once
  single_step([&](const ucontext_t& context) { check->walk(context); },
              [] { throw_and_catch(nullptr); });
  BOOST_TEST(check->walked() > 5'000U);
  BOOST_TEST(check->differing() == 0U);
  BOOST_TEST_MESSAGE(check->walked() << " instructions, " << check->incomplete() << " incomplete");
  BOOST_TEST(check->incomplete_elsewhere() == 0U);
  BOOST_TEST(check->incomplete() <= check->walked() / 100);
}

namespace {

/// A thread whose signal handler walks both of its stacks, one after the other.
struct TwoStacks {
  static constexpr std::size_t kBytes = std::size_t{1} << 18;

  pe::testing::OwnSpace own;
  RuleCache cache;
  Walker walker{cache};
  std::uint64_t alternate_end = 0, normal_end = 0;
  std::vector<std::uint64_t> copy;
  std::vector<Frame> inner = std::vector<Frame>(64), outer = std::vector<Frame>(64);
  WalkResult at_first{}, then{};
  std::vector<void*> theirs = std::vector<void*>(64);

  __attribute__((noinline)) void walk_here() {
    ucontext_t context;
    ::getcontext(&context);
    theirs.resize(static_cast<std::size_t>(::backtrace(theirs.data(), 64)));
    const auto registers = pe::testing::registers_of(context);
    at_first = walk({registers}, alternate_end, inner);
    then =
        walk({architecture::Registers(at_first.last), !at_first.last_is_exact}, normal_end, outer);
  }
  WalkResult walk(const WalkStart& start, std::uint64_t end, std::vector<Frame>& out) {
    const auto view = pe::testing::copy_of_stack(start.registers.state().sp, end, copy);
    const auto result = walker.walk(own.space(), start, view, out);
    out.resize(result.frames);
    return result;
  }
};

TwoStacks* two_stacks;  // global: a signal handler has no other access

void* raise_on_alternate_stack(void* alternate) {
  two_stacks->alternate_end = reinterpret_cast<std::uint64_t>(alternate) + TwoStacks::kBytes;
  two_stacks->normal_end = pe::testing::own_stack_end();
  const stack_t stack{alternate, 0, TwoStacks::kBytes};
  ::sigaltstack(&stack, nullptr);
  const CallPath path{[](void*) { ::raise(SIGUSR1); }, nullptr, 5};
  o2_recursive(&path);
  const stack_t none{nullptr, SS_DISABLE, 0};
  ::sigaltstack(&none, nullptr);
  return nullptr;
}

/// Runs in a thread whose stack and alternate stack are the halves of one mapping.
void walk_two_stacks(bool is_alternate_above) {
  auto* memory = static_cast<char*>(::mmap(nullptr, 2 * TwoStacks::kBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = [](int) { two_stacks->walk_here(); };
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGUSR1, &action, &before);
  pthread_attr_t attributes;
  pthread_t thread;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstack(&attributes, memory + (is_alternate_above ? 0 : TwoStacks::kBytes),
                          TwoStacks::kBytes);
  BOOST_REQUIRE(::pthread_create(&thread, &attributes, raise_on_alternate_stack,
                                 memory + (is_alternate_above ? TwoStacks::kBytes : 0)) == 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
  ::sigaction(SIGUSR1, &before, nullptr);
  ::munmap(memory, 2 * TwoStacks::kBytes);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_handler_on_an_alternate_stack_is_walked_out_of_with_the_other_stack) {
  for (const bool is_alternate_above : {false, true}) {
    const auto stacks = std::make_unique<TwoStacks>();
    two_stacks = stacks.get();
    walk_two_stacks(is_alternate_above);
    two_stacks = nullptr;

    BOOST_CHECK(stacks->at_first.stop == Stop::kStackNotCaptured);
    BOOST_CHECK(stacks->then.stop == Stop::kEndOfStack);
    BOOST_TEST(stacks->at_first.last_is_exact);
    BOOST_REQUIRE(stacks->inner.size() >= 3U);
    BOOST_REQUIRE(stacks->outer.size() > 7U);
    BOOST_CHECK(stacks->outer.front() == stacks->inner.back());

    auto ours = stacks->inner;
    ours.insert(ours.end(), stacks->outer.begin() + 1, stacks->outer.end());
    // All frames except the first, in which the two calls have different addresses.
    BOOST_REQUIRE(stacks->theirs.size() >= ours.size());
    for (std::size_t i = 1; i < ours.size(); ++i)
      BOOST_TEST(ours[ours.size() - i].address() ==
                 reinterpret_cast<std::uint64_t>(stacks->theirs[stacks->theirs.size() - i]));
  }
}

BOOST_AUTO_TEST_SUITE_END()
