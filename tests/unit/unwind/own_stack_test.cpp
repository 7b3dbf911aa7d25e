// Walks of our own stacks, at calls and at each instruction, compared with backtrace(3), which uses
// libgcc's unwinder.
// SPDX-License-Identifier: MIT
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <string_view>
#include <thread>
#include <vector>

#include "call_paths.h"
#include "support/witness.h"

BOOST_AUTO_TEST_SUITE(own_stack)

namespace {

using pe::testing::single_step;
using pe::testing::Witness;

struct Variant {
  const char* name;
  void (*run)(const CallPath*);
};
#define VARIANTS(PREFIX)                                                                        \
  Variant{#PREFIX " plain", PREFIX##_plain}, Variant{#PREFIX " recursive", PREFIX##_recursive}, \
      Variant{#PREFIX " alloca", PREFIX##_alloca},                                              \
      Variant{#PREFIX " realigned", PREFIX##_realigned},                                        \
      Variant{#PREFIX " sorting", PREFIX##_sorting},                                            \
      Variant{#PREFIX " copying", PREFIX##_copying},
constexpr Variant kVariants[] = {VARIANTS(o0) VARIANTS(o2) VARIANTS(o3) VARIANTS(fp)};

Witness* handler_witness;  // global: a signal handler has no other access

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
    single_step([&](const ucontext_t& context) { witness->compare_interrupted(context); },
                [&] { variant.run(&path); });
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
  handler_witness = witness.get();
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = [](int) { handler_witness->compare_here(); };
  ::sigaction(SIGUSR1, &action, &before);
  const CallPath path{[](void*) { ::raise(SIGUSR1); }, nullptr, 5};
  o2_recursive(&path);
  fp_sorting(&path);
  ::sigaction(SIGUSR1, &before, nullptr);
  handler_witness = nullptr;
  BOOST_TEST(witness->compared() == 2U);
  BOOST_TEST(witness->all_same());
}

BOOST_AUTO_TEST_SUITE_END()
