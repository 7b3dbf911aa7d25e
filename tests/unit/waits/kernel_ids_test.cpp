// SPDX-License-Identifier: MIT
#include "recording/waits/kernel_ids.h"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <optional>

using pe::waits::KernelIds;

BOOST_AUTO_TEST_SUITE(kernel_ids)

BOOST_AUTO_TEST_CASE(in_the_first_namespace_numbers_are_ids) {
  KernelIds ids(true);
  BOOST_TEST((ids.tid_of(7) == 7u));
}

BOOST_AUTO_TEST_CASE(in_another_namespace_only_switches_tell) {
  KernelIds ids(false);
  BOOST_TEST((ids.tid_of(7) == std::nullopt));  // a thread elsewhere has the number of one of ours
  ids.learn(4007, 7);
  ids.learn(4008, 8);
  ids.learn(4007, 7);
  BOOST_TEST((ids.tid_of(4007) == 7u));
  BOOST_TEST((ids.tid_of(4008) == 8u));
  BOOST_TEST((ids.tid_of(7) == std::nullopt));
}

BOOST_AUTO_TEST_CASE(numbers_and_ids_are_used_again) {
  KernelIds ids(false);
  ids.learn(4007, 7);
  ids.forget(7);
  ids.forget(9);
  BOOST_TEST((ids.tid_of(4007) == std::nullopt));
  ids.learn(4007, 7);
  ids.learn(4010, 7);  // its end was not recorded
  BOOST_TEST((ids.tid_of(4007) == std::nullopt));
  BOOST_TEST((ids.tid_of(4010) == 7u));
  ids.learn(4010, 11);  // so was the end of this one
  ids.forget(7);
  BOOST_TEST((ids.tid_of(4010) == 11u));
}

BOOST_AUTO_TEST_CASE(many_threads_do_not_fill_the_memory) {
  KernelIds ids(false);
  constexpr std::uint32_t kThreads = 1U << 19;
  for (std::uint32_t tid = 1; tid <= kThreads; ++tid)
    ids.learn(tid + kThreads, tid);
  BOOST_TEST((ids.tid_of(2 * kThreads) == kThreads));
  BOOST_TEST((ids.tid_of(1 + kThreads) == std::nullopt));
}

BOOST_AUTO_TEST_SUITE_END()
