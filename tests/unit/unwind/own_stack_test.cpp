// Our own stacks, at rest and at each instruction, beside backtrace(3), which is libgcc's unwinder.
// SPDX-License-Identifier: MIT
#include "support/own_stack.h"

#include <execinfo.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "call_paths.h"

BOOST_AUTO_TEST_SUITE(own_stack)

namespace {

using namespace pe::unwind;
using pe::testing::OwnSpace;

constexpr std::size_t kMaxFrames = 2048;

struct Variant {
  const char* name;
  void (*run)(const CallPath*);
};
#define VARIANTS(PREFIX)                                                                        \
  Variant{#PREFIX " plain", PREFIX##_plain}, Variant{#PREFIX " recursive", PREFIX##_recursive}, \
      Variant{#PREFIX " alloca", PREFIX##_alloca},                                              \
      Variant{#PREFIX " realigned", PREFIX##_realigned},                                        \
      Variant{#PREFIX " sorting", PREFIX##_sorting}, Variant {                                  \
#PREFIX " copying", PREFIX##_copying                                                        \
  }
constexpr Variant kVariants[] = {VARIANTS(o0), VARIANTS(o2), VARIANTS(o3), VARIANTS(fp)};

/// Walks the calling thread's stack in several ways, and compares.
class Witness {
 public:
  Witness() : walker_(cache_), end_(pe::testing::own_stack_end()) {
    ::backtrace(theirs_.data(), 1);  // loads libgcc
  }

  /// From `context` on; `theirs_` must hold a backtrace that includes its address.
  void compare(const ucontext_t& context, bool is_here) {
    const auto registers = pe::testing::registers_of(context);
    const StackView stack = copy_stack(registers.state().sp);
    const WalkStart start{registers};
    const WalkResult walk = walker_.walk(own_.space(), start, stack, ours_);
    const WalkResult again = walker_.walk(own_.space(), start, stack, reused_, history_);
    const WalkResult slow = walk_with_all_registers(own_.space(), start, stack, slow_);
    // Both are in compare_here() then, at different calls; a sanitizer's frames may lie inside.
    if (is_here && their_count_ >= walk.frames)
      theirs_[their_count_ - walk.frames] =
          reinterpret_cast<void*>(context.uc_mcontext.gregs[REG_RIP]);
    ++compared_;
    same_ = same_ && is_same(walk, ours_, again, reused_) && is_same(walk, ours_, slow, slow_) &&
            is_as_theirs(walk) && walk.stop == Stop::kEndOfStack;
    if (!same_ && first_difference_ == 0)
      first_difference_ = registers.state().ip;
    deepest_ = std::max(deepest_, walk.frames);
  }

  /// The same from where this is called; true if all agree.
  __attribute__((noinline)) bool compare_here() {
    ucontext_t context;
    ::getcontext(&context);
    their_count_ = static_cast<std::size_t>(::backtrace(theirs_.data(), kMaxFrames));
    compare(context, true);
    return same_;
  }

  /// For a signal handler.
  void compare_interrupted(const ucontext_t& context) {
    their_count_ = static_cast<std::size_t>(::backtrace(theirs_.data(), kMaxFrames));
    compare(context, false);
  }

  void ends_realigned(bool does) { ends_realigned_ = does; }
  [[nodiscard]] bool all_same() const { return same_; }
  [[nodiscard]] std::uint64_t first_difference() const { return first_difference_; }
  [[nodiscard]] std::size_t compared() const { return compared_; }
  [[nodiscard]] std::size_t deepest() const { return deepest_; }
  [[nodiscard]] const Walker& walker() const { return walker_; }

 private:
  using Frames = std::array<Frame, kMaxFrames>;

  /// From `sp` on, word by word: AddressSanitizer, which keeps others out of places between
  /// variables, looks at memcpy.
  __attribute__((no_sanitize("address"))) StackView copy_stack(std::uint64_t sp) {
    const auto* from = reinterpret_cast<const std::uint64_t*>(sp & ~std::uint64_t{7});
    const auto words = std::min<std::size_t>((end_ - sp) / 8, copy_.size());
    for (std::size_t i = 0; i < words; ++i)
      copy_[i] = from[i];
    return {sp, std::as_bytes(std::span(copy_).first(words))};
  }

  static bool is_same(const WalkResult& a, const Frames& a_frames, const WalkResult& b,
                      const Frames& b_frames) {
    return a.stop == b.stop && a.frames == b.frames &&
           std::equal(a_frames.begin(), a_frames.begin() + static_cast<std::ptrdiff_t>(a.frames),
                      b_frames.begin());
  }

  /// From the interrupted address on; before it come the handler's own frames.
  bool is_as_theirs(const WalkResult& walk) const {
    std::size_t first = 0;
    while (first < their_count_ &&
           reinterpret_cast<std::uint64_t>(theirs_[first]) != ours_[0].address())
      ++first;
    const std::size_t their_frames = their_count_ - first;
    // At the end of a realigned function gcc's CFI still says that rbp is on the stack.  libgcc
    // believes it and goes astray after the caller; we do not (row_step.cpp).
    const std::size_t certain = ends_realigned_ ? 2 : walk.frames;
    if (their_frames < certain || (!ends_realigned_ && their_frames != walk.frames))
      return false;
    for (std::size_t i = 0; i < certain; ++i)
      if (reinterpret_cast<std::uint64_t>(theirs_[first + i]) != ours_[i].address())
        return false;
    return true;
  }

  OwnSpace own_;
  RuleCache cache_;
  Walker walker_;
  ThreadHistory history_;
  std::uint64_t end_;
  Frames ours_{}, reused_{}, slow_{};
  std::array<void*, kMaxFrames> theirs_{};
  std::size_t their_count_ = 0;
  std::vector<std::uint64_t> copy_ = std::vector<std::uint64_t>(std::size_t{1} << 17);
  bool same_ = true;
  bool ends_realigned_ = false;
  std::uint64_t first_difference_ = 0;
  std::size_t compared_ = 0, deepest_ = 0;
};

Witness* stepping_witness;  // a signal handler has no other way to know

void on_step(int /*signal*/, siginfo_t* /*info*/, void* context) {
  stepping_witness->compare_interrupted(*static_cast<const ucontext_t*>(context));
}

/// Runs `run` one instruction at a time, with a SIGTRAP after each.
void single_step(Witness& witness, const std::function<void()>& run) {
  stepping_witness = &witness;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGTRAP, &action, &before);
  asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  run();
  asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
  ::sigaction(SIGTRAP, &before, nullptr);
  stepping_witness = nullptr;
}

void compare_at_leaf(void* witness) { static_cast<Witness*>(witness)->compare_here(); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_shape_of_frame_is_walked_as_libgcc_does) {
  const auto witness = std::make_unique<Witness>();
  for (const Variant& variant : kVariants)
    for (const int depth : {20, 1000}) {
      const CallPath path{compare_at_leaf, witness.get(), depth};
      variant.run(&path);
      BOOST_TEST(witness->all_same(), variant.name << ", depth " << depth);
    }
  BOOST_TEST(witness->deepest() > 1000U);
  BOOST_TEST(witness->walker().statistics().general_walks == 0U);
}

BOOST_AUTO_TEST_CASE(each_instruction_of_every_shape_is_walked_as_libgcc_does) {
  const auto witness = std::make_unique<Witness>();
  for (const Variant& variant : kVariants) {
    const CallPath path{[](void*) {}, nullptr, 20};
    const std::size_t before = witness->compared();
    witness->ends_realigned(std::string_view(variant.name).ends_with("realigned"));
    single_step(*witness, [&] { variant.run(&path); });
    BOOST_TEST(witness->compared() > before + 20);
    BOOST_TEST(witness->all_same(),
               variant.name << " at " << std::hex << witness->first_difference());
  }
  BOOST_TEST(witness->walker().statistics().frames_reused > 0U);
}

BOOST_AUTO_TEST_CASE(a_thread_ends_at_its_first_function) {
  std::thread([] {
    const auto witness = std::make_unique<Witness>();
    const CallPath path{compare_at_leaf, witness.get(), 3};
    o2_recursive(&path);
    BOOST_TEST(witness->all_same());
  }).join();
}

BOOST_AUTO_TEST_CASE(a_signal_handler_is_walked_out_of) {
  const auto witness = std::make_unique<Witness>();
  stepping_witness = witness.get();
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { stepping_witness->compare_here(); };
  ::sigaction(SIGUSR1, &action, &before);
  const CallPath path{[](void*) { ::raise(SIGUSR1); }, nullptr, 5};
  o2_recursive(&path);
  fp_sorting(&path);
  ::sigaction(SIGUSR1, &before, nullptr);
  stepping_witness = nullptr;
  BOOST_TEST(witness->compared() == 2U);
  BOOST_TEST(witness->all_same());
}

BOOST_AUTO_TEST_SUITE_END()
