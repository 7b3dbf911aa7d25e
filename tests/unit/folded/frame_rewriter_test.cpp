// SPDX-License-Identifier: MIT
#include "folded/frame_rewriter.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "base/error.h"

using pe::folded::FrameRewriter;
using pe::folded::without_build_details;
using pe::folded::without_hex_numbers;

BOOST_AUTO_TEST_SUITE(frame_rewriter)

BOOST_AUTO_TEST_CASE(endings_that_compilers_add_are_cut) {
  for (const char* name :
       {"f.cold", "f.isra.0", "f.constprop.12", "f.part.3.isra.0.cold", "f.lto_priv.0.cold.7",
        "f.llvm.1234567890", "f.__uniq.123.llvm.5", "f.localalias", "f [clone .isra.0]",
        "f [clone .part.0] [clone .cold]", "f::h0123456789abcdef", "f.cold.0"})
    BOOST_TEST(without_build_details(name) == "f");
  BOOST_TEST(without_build_details("ns::f(int).cold") == "ns::f(int)");
}

BOOST_AUTO_TEST_CASE(names_that_only_look_a_little_like_that_stay) {
  for (const char* name : {".cold", "f.colder", "libc.so.6", "f.isra.x", "f.", "f.0", "f::hello",
                           "f::h0123", "[clone .x]", "main.go", "a", "", "_[k]", "v1.2.3"})
    BOOST_TEST(without_build_details(name) == name);
}

BOOST_AUTO_TEST_CASE(template_arguments_become_dots) {
  const std::pair<const char*, const char*> kNames[] = {
      {"std::vector<int>::push_back(int&&)", "std::vector<...>::push_back(int&&)"},
      {"f<std::pair<int, g<1> > >(a<b>)", "f<...>(a<...>)"},
      {"core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place<...>"},
      {"iter::map::<u8>::next", "iter::map::<...>::next"},
      {"f<decltype(a->b)>::g", "f<...>::g"},
  };
  for (const auto& [name, expected] : kNames)
    BOOST_TEST(without_build_details(name) == expected);
}

BOOST_AUTO_TEST_CASE(angle_brackets_that_are_no_arguments_stay) {
  for (const char* name :
       {"operator<", "ns::operator<<(ostream&, int)", "operator<=>", "operator->", "A::operator>>",
        "java/lang/Object.<init>", "<module>", "py <listcomp>", "<T as Trait>::f", "a<b", "f->g"})
    BOOST_TEST(without_build_details(name) == name);
}

BOOST_AUTO_TEST_CASE(addresses_become_dots_and_marks_stay) {
  BOOST_TEST(without_build_details("libx.so+0x1a2B") == "libx.so+0x...");
  BOOST_TEST(without_build_details("0xffffffff81000000_[k]") == "0x..._[k]");
  BOOST_TEST(without_build_details("do_sys_open.isra.0_[k]") == "do_sys_open_[k]");
  BOOST_TEST(without_hex_numbers("a;0x12+0xg;00x1;0X1;0x") == "a;0x...+0xg;00x...;0X1;0x");
}

BOOST_AUTO_TEST_CASE(hostile_names_take_linear_time) {
  std::string opening;
  std::string dots;
  for (int i = 0; i < 300'000; ++i) {
    opening += "a<";
    dots += ".cold";
  }
  BOOST_TEST(without_build_details(opening) == opening);
  BOOST_TEST(without_build_details("f" + dots) == "f");
}

BOOST_AUTO_TEST_CASE(expressions_cut_what_they_match) {
  const std::vector<std::string> expressions = {"_v[0-9]+", "^lib"};
  const FrameRewriter both("strip", expressions, true);
  BOOST_TEST(both.rewrite("libf_v12.cold") == "f");
  const FrameRewriter only("strip", expressions, false);
  BOOST_TEST(only.rewrite("libf_v12.cold") == "f.cold");
  BOOST_TEST(!only.is_empty());
  BOOST_TEST(FrameRewriter("strip", {}, false).is_empty());
}

BOOST_AUTO_TEST_CASE(a_name_is_never_cut_to_nothing) {
  const std::vector<std::string> expressions = {".*"};
  BOOST_TEST(FrameRewriter("strip", expressions, true).rewrite("f.cold") == "f.cold");
}

BOOST_AUTO_TEST_CASE(a_bad_expression_is_refused_by_its_option) {
  const std::vector<std::string> expressions = {"("};
  BOOST_CHECK_EXCEPTION(
      FrameRewriter("strip", expressions, true), pe::UsageError, [](const pe::UsageError& e) {
        return std::string(e.what()).starts_with("--strip: not a regular expression: '('");
      });
}

BOOST_AUTO_TEST_SUITE_END()
