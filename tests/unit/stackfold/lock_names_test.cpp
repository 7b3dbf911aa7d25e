// SPDX-License-Identifier: MIT
#include "stackfold/stream_stacks.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>
#include <vector>

using pe::fold::LockNames;

BOOST_AUTO_TEST_SUITE(lock_names)

namespace {

using Frames = std::vector<std::string_view>;  ///< the innermost first

std::string name_of(const Frames& frames, std::string_view variable = "g", std::uint64_t at = 64) {
  return LockNames().name(1, at, variable, frames);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_function_that_waits_shows_the_kind) {
  BOOST_TEST(name_of({"__lll_lock_wait", "___pthread_mutex_lock", "f"}) == "[mutex g]");
  BOOST_TEST(name_of({"__futex_abstimed_wait_common", "pthread_cond_wait@@GLIBC_2.3.2", "f"}) ==
             "[condition variable g]");
  BOOST_TEST(name_of({"__GI___pthread_rwlock_rdlock", "std::shared_mutex::lock_shared()", "f"}) ==
             "[read-write lock g]");
  BOOST_TEST(name_of({"do_futex_wait", "__new_sem_wait_slow64", "f"}) == "[semaphore g]");
  BOOST_TEST(name_of({"__syscall_cancel_arch_end", "__internal_syscall_cancel",
                      "__futex_abstimed_wait_common64", "__pthread_cond_wait", "f"}) ==
             "[condition variable g]");
  BOOST_TEST(name_of({"__pthread_clockjoin_ex", "std::thread::join()", "f"}) ==
             "[thread joined at f]");
  BOOST_TEST(name_of({"runtime.futex", "runtime.futexsleep", "runtime.lock2"}) == "[mutex g]");
  BOOST_TEST(name_of({"syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended"}) ==
             "[mutex g]");
  BOOST_TEST(name_of({"libc.so.6`pthread_barrier_wait", "f"}) == "[barrier g]");
}

BOOST_AUTO_TEST_CASE(a_condition_variable_waits_for_its_mutex_at_the_end) {
  BOOST_TEST(name_of({"__lll_lock_wait", "pthread_mutex_lock", "pthread_cond_wait", "f"}) ==
             "[mutex g]");
}

BOOST_AUTO_TEST_CASE(a_function_of_the_program_does_not_show_a_kind) {
  BOOST_TEST(name_of({"syscall", "my_sem_wait", "sem_wait"}) == "[futex g]");
  BOOST_TEST(name_of({"syscall", "f", "pthread_mutex_lock"}) == "[futex g]");
  BOOST_TEST(name_of({}) == "[futex g]");
}

BOOST_AUTO_TEST_CASE(the_end_of_a_thread_shows_a_join_whose_function_has_no_name) {
  BOOST_TEST(name_of({"libc.so.6+0x8b000", "f"}, "", 64 | 1) == "[thread joined at f]");
  BOOST_TEST(name_of({"pthread_mutex_lock", "f"}, "", 64 | 1) == "[mutex first waited for at f]");
}

BOOST_AUTO_TEST_CASE(the_words_of_a_condition_variable_are_one) {
  const Frames waits = {"pthread_cond_wait", "f"};
  BOOST_TEST(name_of(waits, "g+0x28") == "[condition variable g]");
  BOOST_TEST(name_of(waits, "g+0x2c") == "[condition variable g]");
  BOOST_TEST(name_of(waits, "g+0x6c") == "[condition variable g+0x68]");
  BOOST_TEST(name_of(waits, "g+0xx") == "[condition variable g+0xx]");
  BOOST_TEST(name_of({"pthread_mutex_lock", "f"}, "g+0x2c") == "[mutex g+0x2c]");
}

BOOST_AUTO_TEST_CASE(a_lock_on_the_heap_has_the_name_of_the_first_function_that_waits) {
  LockNames names;
  const Frames first = {"futex_wait_queue_[k]", "libc.so.6+0x8b000", "pthread_mutex_lock",
                        "std::mutex::lock()",   "Pool::take",        "main"};
  const Frames other = {"pthread_mutex_lock", "Pool::give", "main"};
  BOOST_TEST(names.name(1, 64, "", first) == "[mutex first waited for at Pool::take]");
  BOOST_TEST(names.name(1, 64, "", other) == "[mutex first waited for at Pool::take]");
  BOOST_TEST(names.name(1, 128, "", other) == "[mutex first waited for at Pool::give]");
  BOOST_TEST(names.name(2, 64, "", other) == "[mutex first waited for at Pool::give]");
  BOOST_TEST(names.name(1, 192, "", Frames{"[unknown]", "libc.so.6+0x8b000"}) ==
             "[futex first waited for at an unknown place]");
}

BOOST_AUTO_TEST_SUITE_END()
