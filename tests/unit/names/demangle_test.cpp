// SPDX-License-Identifier: MIT
#include "names/demangle.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>

#include "support/test_binary.h"

namespace {

using pe::names::demangle;

/// A C++ substitution by its number: S_, S0_, ..., SZ_, S10_, ...
std::string substitution(int number) {
  static constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (number == 0)
    return "S_";
  std::string digits;
  for (--number;; number /= 36) {
    digits.insert(digits.begin(), kDigits[static_cast<std::size_t>(number % 36)]);
    if (number < 36)
      return "S" + digits + "_";
  }
}

/// pair<pair<pair<...>, pair<...>>, ...>: each level is twice as large as the one before.
std::string doubling(int levels) {
  std::string name = "St4pairIiiE";
  for (int i = 1; i <= levels; ++i)
    name += "S_I" + substitution(i) + substitution(i) + "E";
  return name;
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i)
    all += text;
  return all;
}

/// Checks that demangle() returns `name` unchanged and quickly.
void expect_refused(const std::string& name) {
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST((demangle(name) == name));
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds(1)));
}

/// Checks that demangle() returns quickly; the result may be anything.
void expect_quick(const std::string& name) {
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(demangle(name).size() <= pe::names::kMaxDemangledBytes + name.size());
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds(1)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(demangle_names)

BOOST_AUTO_TEST_CASE(cpp_names_lose_parameters_and_return_types) {
  BOOST_TEST(demangle("_ZN2ns1fIiEEvT_") == "ns::f<int>");
  BOOST_TEST(demangle("_ZNKSt6vectorIiSaIiEE4sizeEv") ==
             "std::vector<int, std::allocator<int> >::size");
  BOOST_TEST(demangle("_ZZ4mainENKUlvE_clEv") == "main::{lambda()#1}::operator()");
  BOOST_TEST(demangle("_ZN1AC1Ev") == "A::A");
  BOOST_TEST(demangle("_Znwm") == "operator new");
}

BOOST_AUTO_TEST_CASE(rust_names_lose_their_hash) {
  BOOST_TEST(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE") ==
             "core::fmt::Write::write_fmt");
  BOOST_TEST(demangle("_ZN50_$LT$T$u20$as$u20$core..convert..Into$LT$U$GT$$GT$4into"
                      "17h0123456789abcdefE") == "<T as core::convert::Into<U>>::into");
  BOOST_TEST(demangle("_ZN4core3fmt5write17h0123456789abcdefE.llvm.1234567890") ==
             "core::fmt::write");
  BOOST_TEST(demangle("_RINvNtC3std3mem8align_ofdE") == "std::mem::align_of::<f64>");
  BOOST_TEST(demangle("_RNvC6_123foo3bar.llvm.12AB") == "123foo::bar");
}

BOOST_AUTO_TEST_CASE(d_names_lose_their_parameters) {
  BOOST_TEST(demangle("_D8demangle4testFAiZv") == "demangle.test");
  BOOST_TEST(demangle("_Dmain") == "D main");
}

BOOST_AUTO_TEST_CASE(what_is_not_mangled_stays) {
  for (const char* name : {"", "main", "_Z", "_ZN", "_R", "_D", "_start", "__libc_start_main",
                           "_GLOBAL__sub_I_x.cpp", "entry_SYSCALL_64", "foo.cold", "_ZTHISISNOT"})
    BOOST_TEST(demangle(name) == name);
}

BOOST_AUTO_TEST_CASE(clones_keep_their_suffix_as_it_is) {
  BOOST_TEST(demangle("_ZN2ns1fEv.cold") == "ns::f.cold");
  BOOST_TEST(demangle("_ZN2ns1fEv.constprop.0.isra.0") == "ns::f.constprop.0.isra.0");
  BOOST_TEST(demangle("_Z3foov.part.0.llvm.77") == "foo.part.0");
}

BOOST_AUTO_TEST_CASE(what_follows_an_at_sign_stays) {
  BOOST_TEST(demangle("_Znwm@plt") == "operator new@plt");
  BOOST_TEST(demangle("_ZNSaIcEC1Ev@@GLIBCXX_3.4") ==
             "std::allocator<char>::allocator@@GLIBCXX_3.4");
}

BOOST_AUTO_TEST_CASE(
    nodes_of_later_libiberties_are_not_followed_blindly) {  // unnamed enums of binutils 2.47
  const std::string name = demangle(
      "_ZZN3fmt3v116detail18parse_format_specsIcEEPKT_S5_S5_RNS1_20dynamic_format_specsIS3_EERNS0_"
      "13parse_contextIS3_EENS1_4typeEENUt0_clENS0_17presentation_typeEi");
  BOOST_TEST(name.starts_with("fmt::v11::detail::parse_format_specs<char>("));
}

BOOST_AUTO_TEST_CASE(agrees_with_cxxfilt_without_parameters) {
  const std::string names = pe::testing::output_of(
      "nm -D --defined-only /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | awk '$2 == \"T\" || "
      "$2 == \"W\" {sub(/@.*/, \"\", $3); print $3}' | grep ^_Z | head -2000");
  const std::string expected = pe::testing::output_of(
      "nm -D --defined-only /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | awk "
      "'$2 == \"T\" || $2 == \"W\" {sub(/@.*/, \"\", $3); print $3}' | "
      "grep ^_Z | head -2000 | c++filt -p -i");
  std::string ours;
  std::size_t start = 0;
  for (std::size_t eol = 0; (eol = names.find('\n', start)) != std::string::npos; start = eol + 1)
    ours += demangle(std::string_view(names).substr(start, eol - start)) + "\n";
  BOOST_TEST((ours == expected));
}

BOOST_AUTO_TEST_CASE(names_that_double_with_every_substitution_are_refused) {
  BOOST_TEST(demangle("_Z1f" + doubling(3)) == "f");
  expect_quick("_Z1f" + doubling(200));  // parameters are not printed
  expect_refused("_Z1fI" + doubling(60) + "EvT_");
  expect_refused("_Z1fI" + doubling(500) + "EvT_");
}

BOOST_AUTO_TEST_CASE(pack_expansions_do_not_search_for_ever) {
  std::string nested = "St4pairIiiE";
  for (int i = 1; i < 40; ++i)
    nested = "S_I" + nested + substitution(i) + "E";
  expect_quick("_Z1fIJDp" + nested + "EEvv");
  expect_quick("_Z1fIJ" + repeated("Dp", 3000) + "T_EEvv");
  expect_quick("_Z1fI" + repeated("J", 3000) + "i" + repeated("E", 3000) + "EvDpT_");
}

BOOST_AUTO_TEST_CASE(deep_nesting_does_not_exhaust_the_stack) {
  for (const char* part :
       {"P",  "K",  "Dp", "DT", "cv",  "A_", "M1A", "F",  "I",  "J",   "N",   "Z",  "X",
        "st", "dt", "cl", "sr", "U1A", "Dt", "on",  "il", "tl", "L_Z", "FvP", "gs", "nw"}) {
    expect_quick("_Z1fI" + repeated(part, 8000 / std::string_view(part).size()));
    expect_quick("_Z" + repeated(part, 8000 / std::string_view(part).size()) + "i");
    expect_quick("_Z1f" + repeated(part, 2000) + "i" + repeated("E", 2000));
  }
  for (const char* part : {"P", "A", "T", "S", "F", "B_", "I", "M", "X", "Y", "D", "K", "Nv"})
    expect_quick("_R" + repeated(part, 4000) + "u");
  for (const char* part : {"P", "A", "FA", "H", "Qb", "C1aF", "D", "S1a", "__T", "B"})
    expect_quick("_D1aF" + repeated(part, 4000) + "i");
}

BOOST_AUTO_TEST_CASE(many_templates_with_references_do_not_exhaust_the_stack) {
  expect_refused("_Z1fI" + repeated("1AIiE", 400) + repeated("RT_", 400) + "EvT_");
}

BOOST_AUTO_TEST_CASE(rust_lifetimes_are_not_counted_to_the_end) {
  expect_refused("_RNvMINvC1a1bFGzzzzzzzz_EuEu3foo");
  expect_refused("_RNvMINvC1a1bDGzzzzz_EuEu3foo");
}

BOOST_AUTO_TEST_CASE(rust_back_references_stop_at_the_limit) {
  std::string name = "_RINvC1a1b";
  std::size_t last = name.size() - 2;
  name += "TuuE";
  for (int i = 0; i < 30; ++i) {
    // A base-62 number of up to two digits: a distance from the end of "_R".
    static constexpr std::string_view kDigits =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const std::size_t number = last - 1;
    const std::string digits = number < 62
                                   ? std::string(1, kDigits[number])
                                   : std::string{kDigits[number / 62], kDigits[number % 62]};
    last = name.size() - 2;
    name += "TB" + digits + "_B" + digits + "_E";
  }
  expect_refused(name + "E");
}

BOOST_AUTO_TEST_CASE(nested_d_functions_are_not_parsed_for_ever) {
  expect_refused("_D1aF" + repeated("C1aF", 40));
}

BOOST_AUTO_TEST_CASE(long_names_and_names_with_a_nul_stay) {
  expect_refused("_Z9000" + std::string(9000, 'x') + "v");
  expect_refused(std::string("_Z1f\0v", 6));
}

BOOST_AUTO_TEST_SUITE_END()
