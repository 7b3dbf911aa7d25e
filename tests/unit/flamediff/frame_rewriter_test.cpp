// SPDX-License-Identifier: MIT
#include "flamediff/profiles.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "base/error.h"

using pe::folded::FrameRewriter;
using pe::folded::without_template_arguments;

BOOST_AUTO_TEST_SUITE(frame_rewriter)

BOOST_AUTO_TEST_CASE(template_arguments_become_dots) {
  const std::pair<const char*, const char*> kNames[] = {
      {"std::vector<int>::push_back(int&&)", "std::vector<...>::push_back(int&&)"},
      {"f<std::pair<int, g<1> > >(a<b>)", "f<...>(a<...>)"},
      {"core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place<...>"},
      {"iter::map::<u8>::next", "iter::map::<...>::next"},
      {"f<decltype(a->b)>::g", "f<...>::g"},
      {"cooperator<int>::f", "cooperator<...>::f"},
  };
  for (const auto& [name, expected] : kNames)
    BOOST_TEST(without_template_arguments(name) == expected);
}

BOOST_AUTO_TEST_CASE(angle_brackets_that_are_no_arguments_stay) {
  for (const char* name :
       {"operator<", "ns::operator<<(ostream&, int)", "operator<=>", "operator->", "A::operator>>",
        "java/lang/Object.<init>", "<module>", "py <listcomp>", "<T as Trait>::f", "a<b", "f->g"})
    BOOST_TEST(without_template_arguments(name) == name);
}

BOOST_AUTO_TEST_CASE(hostile_brackets_take_linear_time) {
  std::string opening;
  for (int i = 0; i < 300'000; ++i)
    opening += "a<";
  BOOST_TEST(without_template_arguments(opening) == opening);
}

BOOST_AUTO_TEST_CASE(marks_of_what_one_run_compiles_are_cut) {
  const FrameRewriter rewriter("strip", {}, true);
  for (const char* name : {"L.work_[j]", "L.work_[i]", "L.work_[s]", "L.work"})
    BOOST_TEST(rewriter.rewrite(name) == "L.work");
  for (const char* name : {"read_[k]", "read_[l]", "read_[o]", "_[i]"})
    BOOST_TEST(rewriter.rewrite(name) == name);
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
