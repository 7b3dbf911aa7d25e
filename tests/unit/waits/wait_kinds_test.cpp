// SPDX-License-Identifier: MIT
#include "recording/waits/wait_kinds.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <variant>
#include <vector>

using pe::stream::Kallsyms;
using Kind = pe::stream::WaitKind;
using pe::waits::WaitKinds;

BOOST_AUTO_TEST_SUITE(wait_kinds)

namespace {

/// A kernel with functions of a page each.
struct Kernel {
  Kernel() {
    std::string text;
    std::uint64_t at = 0xffffffff81000000;
    for (const char* name :
         {"_stext", "__traceiter_sched_switch", "__schedule", "schedule", "do_syscall_64",
          "__x64_sys_futex", "do_futex", "ksys_read", "__x64_sys_openat", "__x64_sys_poll",
          "__x64_sys_restart_syscall", "hrtimer_nanosleep_restart", "kernel_wait4",
          "asm_exc_page_fault", "rwsem_down_read_slowpath", "do_signal_stop", "do_exit"}) {
      char line[96];
      std::snprintf(line, sizeof line, "%016lx T %s\n", static_cast<unsigned long>(at), name);
      text += line;
      functions[name] = at + 0x20;
      at += 0x1000;
    }
    auto parsed = Kallsyms::parse(text);
    BOOST_REQUIRE(std::holds_alternative<Kallsyms>(parsed));
    kinds = WaitKinds(std::move(std::get<Kallsyms>(parsed)));
  }

  [[nodiscard]] std::vector<std::uint64_t> chain(const std::vector<std::string>& names) const {
    std::vector<std::uint64_t> addresses{PERF_CONTEXT_KERNEL};
    for (const std::string& name : names)
      addresses.push_back(functions.at(name));
    addresses.insert(addresses.end(), {PERF_CONTEXT_USER, 0x401000});
    return addresses;
  }
  Kind kind(const std::vector<std::string>& names, const pe::waits::WaitFacts& facts = {}) {
    return kinds.kind_of(chain(names), facts);
  }

  std::map<std::string, std::uint64_t> functions;
  WaitKinds kinds;
};

}  // namespace

BOOST_AUTO_TEST_CASE(system_calls_are_known_by_their_functions) {
  Kernel k;
  BOOST_TEST((k.kind({"schedule", "do_futex", "__x64_sys_futex", "do_syscall_64"}) == Kind::kLock));
  BOOST_TEST((k.kind({"schedule", "do_futex", "do_syscall_64"}) == Kind::kLock));
  BOOST_TEST((k.kind({"schedule", "ksys_read"}) == Kind::kIo));
  BOOST_TEST((k.kind({"schedule", "kernel_wait4"}) == Kind::kChild));
  BOOST_TEST((k.kind({"schedule", "hrtimer_nanosleep_restart", "__x64_sys_restart_syscall"}) ==
              Kind::kSleep));
  BOOST_TEST((k.kind({"schedule", "do_exit"}) == Kind::kOther));
}

BOOST_AUTO_TEST_CASE(the_outermost_entry_counts_and_locks_before_it) {
  Kernel k;
  BOOST_TEST((k.kind({"schedule", "ksys_read", "__x64_sys_openat"}) == Kind::kOther));
  BOOST_TEST((k.kind({"schedule", "asm_exc_page_fault", "ksys_read"}) == Kind::kIo));
  BOOST_TEST((k.kind({"schedule", "asm_exc_page_fault"}) == Kind::kFault));
  BOOST_TEST(
      (k.kind({"schedule", "rwsem_down_read_slowpath", "asm_exc_page_fault"}) == Kind::kLock));
}

BOOST_AUTO_TEST_CASE(states_tell_what_calls_do_not) {
  Kernel k;
  BOOST_TEST((k.kind({"schedule", "__x64_sys_openat"}, {.state = 'D'}) == Kind::kIo));
  BOOST_TEST((k.kind({"schedule", "do_futex"}, {.state = 'T'}) == Kind::kOther));
  BOOST_TEST((k.kind({"schedule", "do_signal_stop", "do_futex"}) == Kind::kOther));
  BOOST_TEST((k.kind({"schedule"}, {.has_program = false, .state = 'D'}) == Kind::kOther));
  BOOST_TEST(
      (WaitKinds().kind_of(k.chain({"schedule", "ksys_read"}), {.state = 'D'}) == Kind::kIo));
}

BOOST_AUTO_TEST_CASE(a_call_for_no_descriptors_sleeps) {
  Kernel k;
  BOOST_TEST((k.kind({"__x64_sys_poll"}, {.arguments = {{0, 9, 9}}}) == Kind::kSleep));
  BOOST_TEST((k.kind({"__x64_sys_poll"}, {.arguments = {{1, 0, 0}}}) == Kind::kIo));
  BOOST_TEST((k.kind({"ksys_read"}, {.arguments = {{0, 0, 0}}}) == Kind::kIo));
  BOOST_TEST((k.kind({"__x64_sys_poll"}) == Kind::kIo));
}

BOOST_AUTO_TEST_CASE(frames_of_tracing_are_removed) {
  Kernel k;
  auto chain = k.chain({"__traceiter_sched_switch", "__schedule", "schedule", "ksys_read"});
  k.kinds.trim(chain);
  BOOST_TEST(chain == k.chain({"schedule", "ksys_read"}), boost::test_tools::per_element());
  k.kinds.trim(chain);
  BOOST_TEST(chain == k.chain({"schedule", "ksys_read"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_thread_that_runs_does_not_wait) {
  BOOST_TEST(!pe::waits::kind_of_waiting(::getpid(), ::getpid()).has_value());
  BOOST_TEST(!pe::waits::kind_of_waiting(::getpid(), 1 << 30).has_value());
}

BOOST_AUTO_TEST_CASE(symbols_are_left_out_where_memory_is_scarce) {
  pe::waits::WaitKinds kinds;
  BOOST_TEST(kinds.load(12 << 20).starts_with("12 MiB of memory are available"));
  BOOST_TEST(kinds.load(64 << 20) == "");
}

BOOST_AUTO_TEST_SUITE_END()
