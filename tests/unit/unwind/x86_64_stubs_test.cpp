// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "unwind/x86_64.h"

using namespace std::literals;
using pe::unwind::Rule;
using pe::unwind::RuleKind;

BOOST_AUTO_TEST_SUITE(x86_64_stubs)

namespace {

/// Returns the rule of the caller whose return address is `at` bytes from the start of `code`.
std::optional<Rule> rule_of_caller(std::string_view code, std::size_t at) {
  return pe::unwind::x86_64::rule_of_stub(std::as_bytes(std::span(code)), at - 1);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_last_call_of_init_has_a_frame_of_one_word) {
  // OpenSSL's: sub $8,%rsp; ...; call OPENSSL_cpuid_setup; add $8,%rsp; ret
  constexpr auto kInit =
      "\x48\x83\xec\x08\x48\x8b\x05\x6d\xcb\x3b\0\x48\x85\xc0\x74\x02\xff\xd0"
      "\xe8\x09\xb6\x16\0\x48\x83\xc4\x08\xc3\xff\xff\xff\xff"sv;
  const auto rule = rule_of_caller(kInit, 23);
  BOOST_TEST_REQUIRE(rule.has_value());
  BOOST_CHECK(rule->kind() == RuleKind::kStackPointer);
  BOOST_TEST(rule->cfa_words() == 2);
  BOOST_TEST(rule->frame_pointer_slot() == 0);
  BOOST_TEST(!rule_of_caller(kInit, 18).has_value());
}

BOOST_AUTO_TEST_CASE(calls_of_all_lengths_are_known) {
  const auto is_call = [](std::string_view end) {
    const std::string code = std::string(8 - end.size(), '\x90').append(end);
    std::uint64_t bytes;
    code.copy(reinterpret_cast<char*>(&bytes), sizeof bytes);
    return pe::unwind::x86_64::ends_in_call(bytes) != 0;
  };
  for (const std::string_view call :
       {"\xe8\1\2\3\4"sv, "\xff\xd0"sv, "\x41\xff\xd7"sv, "\xff\x13"sv, "\xff\x14\xc3"sv,
        "\xff\x53\x18"sv, "\xff\x54\x24\x18"sv, "\xff\x15\1\2\3\4"sv, "\xff\x93\1\2\3\4"sv,
        "\xff\x94\x24\1\2\3\4"sv, "\xff\x14\x25\1\2\3\4"sv})
    BOOST_TEST(is_call(call));
  // No instruction; a jump; a push; a jump in a register; nops.
  for (const std::string_view other :
       {""sv, "\xe9\1\2\3\4"sv, "\xff\x75\x18"sv, "\xff\xe0"sv, "\x0f\x1f\x40\0"sv})
    BOOST_TEST(!is_call(other));
}

BOOST_AUTO_TEST_CASE(a_frame_of_two_words_is_not_taken_for_one) {
  BOOST_TEST(
      !rule_of_caller("\xe8\1\2\3\4\x48\x83\xc4\x10\xc3\xff\xff\xff\xff\xff"sv, 5).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
