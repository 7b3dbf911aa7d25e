// SPDX-License-Identifier: MIT
#include "base/alias.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string_view>
#include <vector>

using pe::Alias;
using pe::Binding;
using pe::is_better_alias;

namespace {

/// The best name of `aliases`, which must not depend on their order.
std::string_view shown(std::vector<Alias> aliases) {
  const auto first = std::min_element(aliases.begin(), aliases.end(), is_better_alias)->name;
  std::reverse(aliases.begin(), aliases.end());
  BOOST_TEST(std::min_element(aliases.begin(), aliases.end(), is_better_alias)->name == first);
  return first;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(alias)

BOOST_AUTO_TEST_CASE(glibc_s_internal_aliases_come_last) {  // as in libc6-dbg 2.36 and 2.41
  using enum Binding;
  BOOST_TEST(shown({{true, kLocal, "__clone3"},
                    {true, kLocal, "clone3"},
                    {true, kLocal, "__GI___clone3"}}) == "clone3");
  BOOST_TEST(shown({{true, kLocal, "__clone3"}, {true, kLocal, "__GI___clone3"}}) == "__clone3");
  BOOST_TEST(shown({{true, kGlobal, "__GI_fcntl"}, {true, kLocal, "__fcntl"}}) == "__fcntl");
}

BOOST_AUTO_TEST_CASE(the_name_that_programs_call_is_shown) {
  using enum Binding;
  BOOST_TEST(shown({{true, kWeak, "__open64"},
                    {true, kWeak, "__open"},
                    {true, kWeak, "open64"},
                    {true, kWeak, "open"}}) == "open");
  BOOST_TEST(shown({{true, kWeak, "clock_gettime"}, {true, kGlobal, "__vdso_clock_gettime"}}) ==
             "__vdso_clock_gettime");
  BOOST_TEST(shown({{true, kGlobal, "f"}, {true, kGlobal, "float"}}) == "f");
  BOOST_TEST(shown({{true, kGlobal, "same_length"}, {true, kGlobal, "Same_length"}}) ==
             "Same_length");
}

BOOST_AUTO_TEST_CASE(functions_come_before_marks_and_labels) {
  using enum Binding;
  BOOST_TEST(shown({{false, kGlobal, "__irqentry_text_end"},
                    {false, kGlobal, "swapgs_restore_regs_and_return_to_usermode"},
                    {false, kLocal, "common_interrupt_return"}}) ==
             "swapgs_restore_regs_and_return_to_usermode");
  BOOST_TEST(shown({{false, kGlobal, "label"}, {true, kLocal, "a_function"}}) == "a_function");
}

BOOST_AUTO_TEST_SUITE_END()
