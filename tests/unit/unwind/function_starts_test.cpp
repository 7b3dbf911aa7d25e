// SPDX-License-Identifier: MIT
#include "unwind/function_ranges.h"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace std::string_literals;
using pe::unwind::FunctionRanges;

BOOST_AUTO_TEST_SUITE(function_starts)

namespace {

constexpr std::uint64_t kStart = 0x1000;
const std::string kFunction = "\x31\xc0\xc3"s;  // xor eax, eax; ret

/// Pads code to a multiple of 16.
std::string padded(std::string code, std::string_view with) {
  while (code.size() % 16 != 0)
    code += with.substr(0, 16 - code.size() % 16);
  return code;
}

std::vector<std::uint64_t> starts_in(const std::string& code) {
  return pe::unwind::function_starts(std::as_bytes(std::span(code)), kStart, FunctionRanges());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_function_starts_where_code_is_padded_after_a_return) {
  using Starts = std::vector<std::uint64_t>;
  BOOST_CHECK((starts_in(padded(kFunction, "\x90") + kFunction) == Starts{kStart + 16}));
  BOOST_CHECK((starts_in(padded(kFunction, "\xcc") + kFunction) == Starts{kStart + 16}));
  const std::string long_nop = "\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\x66\x90"s;
  BOOST_CHECK((starts_in(kFunction + long_nop + kFunction) == Starts{kStart + 16}));
  const std::string whole = "\x0f\x1f\x84\x00\x00\x00\x00\x00\x48\x83\xc4\x08\x31\xc0\x90\xc3"s;
  BOOST_CHECK((starts_in(whole + kFunction) == Starts{kStart + 16}));
}

BOOST_AUTO_TEST_CASE(a_return_in_the_midst_of_a_function_ends_nothing) {
  BOOST_CHECK(starts_in(kFunction + kFunction).empty());
  // je 0x10; xor eax, eax; ret; nops; 0x10: xor eax, eax; ret
  BOOST_CHECK(starts_in(padded("\x74\x0e" + kFunction, "\x90") + kFunction).empty());
  BOOST_CHECK(starts_in("").empty());
}

BOOST_AUTO_TEST_CASE(what_is_no_code_is_no_function) {
  const auto starts = starts_in("\x90\x90\x06\x06"s);
  BOOST_CHECK((starts == std::vector<std::uint64_t>{kStart + 2}));
}

BOOST_AUTO_TEST_SUITE_END()
