// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
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

BOOST_AUTO_TEST_CASE(a_frame_of_two_words_is_not_taken_for_one) {
  BOOST_TEST(
      !rule_of_caller("\xe8\1\2\3\4\x48\x83\xc4\x10\xc3\xff\xff\xff\xff\xff"sv, 5).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
