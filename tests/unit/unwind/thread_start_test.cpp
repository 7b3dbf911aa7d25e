// SPDX-License-Identifier: MIT
#include "unwind/stacks/images.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cerrno>
#include <string_view>

using namespace pe::unwind;
using architecture::Registers;

BOOST_AUTO_TEST_SUITE(thread_start)

namespace {

constexpr unsigned kRax = 0, kRdi = 5, kR15 = 15;
constexpr std::uint64_t kIp = 0x5000;

Registers zeros() {
  Registers registers;
  for (unsigned i = 0; i < architecture::kRegisterCount; ++i)
    registers.set(i, 0);
  registers.set(architecture::kStackPointer, 0x7ff0);
  registers.set(architecture::kInstructionPointer, kIp);
  return registers;
}

/// Whether a thread with a result `rax` of a call is at its start, after the code `before`.
bool is_child_after(std::string_view before, std::uint64_t rax = 0) {
  Registers registers = zeros();
  registers.set(kR15, 1);
  registers.set(kRax, rax);
  return is_at_start(registers, [&](std::uint64_t avma, std::span<std::byte> into) -> std::size_t {
    BOOST_TEST(avma + into.size() == kIp);
    const auto bytes = std::as_bytes(std::span(before)).last(into.size());
    std::ranges::copy(bytes, into.begin());
    return into.size();
  });
}

std::size_t unreadable(std::uint64_t /*avma*/, std::span<std::byte> /*into*/) { return 0; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_new_program_has_registers_of_zero) {
  Registers registers = zeros();
  BOOST_TEST(is_at_start(registers, unreadable));
  registers.set(kRdi, 0x7ff0);  // the stack pointer
  BOOST_TEST(is_at_start(registers, unreadable));
  registers.set(kRdi, 0x7ff8);
  BOOST_TEST(!is_at_start(registers, unreadable));
  registers.set(kRdi, 0);
  registers.set(kR15, 1);
  BOOST_TEST(!is_at_start(registers, unreadable));
  registers.forget(kR15);
  BOOST_TEST(!is_at_start(registers, unreadable));
}

BOOST_AUTO_TEST_CASE(a_child_starts_right_after_the_call_and_has_a_result_of_zero) {
  using namespace std::string_view_literals;
  constexpr std::string_view kCall = "\xb8\xb3\x01\x00\x00\x0f\x05"sv;  // mov eax, 435; syscall
  BOOST_TEST(is_child_after(kCall));
  BOOST_TEST(!is_child_after(kCall, 1234));
  BOOST_TEST(is_child_after("\x01\x00\x00\x0f\x05\x48\x85\xc0"sv));  // test rax, rax
  BOOST_TEST(is_child_after("\x0f\x05\x48\x85\xc0\x7c\x18"sv));      // jl
  BOOST_TEST(!is_child_after("\x01\x00\x00\x0f\x05\x90\x90"sv));
  BOOST_TEST(!is_child_after("\x05\x48\x85\xc0\x7c\x18\x74"sv));
}

BOOST_AUTO_TEST_CASE(the_result_of_a_system_call_is_not_known_before_it_returns) {
  Registers registers = zeros();
  BOOST_TEST(!is_in_system_call(registers));
  registers.set(kRax, static_cast<std::uint64_t>(-ENOSYS));
  BOOST_TEST(is_in_system_call(registers));
}

BOOST_AUTO_TEST_SUITE_END()
