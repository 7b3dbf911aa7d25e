// SPDX-License-Identifier: MIT
#include "stackfold/frame_text.h"

#include <boost/test/unit_test.hpp>

#include "names/demangle.h"

using pe::names::demangle_half_mangled;

BOOST_AUTO_TEST_SUITE(half_mangled_names)

BOOST_AUTO_TEST_CASE(escapes_of_rust_are_resolved_and_the_hash_goes) {
  BOOST_TEST(demangle_half_mangled("_$LT$T$u20$as$u20$my..Trait$LT$A$C$B$GT$$GT$::call::"
                                   "h0123456789abcdef") == "<T as my::Trait<A,B>>::call");
  BOOST_TEST(demangle_half_mangled("a::_$u7b$$u7b$closure$u7d$$u7d$::h0123456789abcdef") ==
             "a::{{closure}}");
  BOOST_TEST(demangle_half_mangled("_$LT$$RF$$BP$$LP$$RP$$SP$$GT$::f::h0123456789abcdef") ==
             "<&*()@>::f");
  BOOST_TEST(demangle_half_mangled("std::fs::open::h0123456789abcdef") == "std::fs::open");
  BOOST_TEST(demangle_half_mangled("prog`_$LT$T$GT$::f::h0123456789abcdef") == "prog`<T>::f");
}

BOOST_AUTO_TEST_CASE(the_suffix_of_a_clone_goes_with_the_hash) {
  BOOST_TEST(demangle_half_mangled("a::f::h0123456789abcdef (.llvm.15516475)") == "a::f");
  BOOST_TEST(demangle_half_mangled("f (.llvm.15516475)") == "f (.llvm.15516475)");
}

BOOST_AUTO_TEST_CASE(the_name_is_that_of_the_whole_symbol) {
  BOOST_TEST(demangle_half_mangled("_$LT$core..iter..Map$LT$I$GT$$u20$as$u20$core..Iter$GT$::next::"
                                   "h0123456789abcdef") ==
             pe::names::demangle("_ZN55_$LT$core..iter..Map$LT$I$GT$$u20$as$u20$core..Iter$GT$4next"
                                 "17h0123456789abcdefE"));
}

BOOST_AUTO_TEST_CASE(other_names_stay) {
  for (const char* name : {"", "main", "a..b$LT$", "f::h0123", "f::h0123456789abcdeg",
                           "::h0123456789abcdef", "_ZN1a17h0123456789abcdefE"})
    BOOST_TEST(demangle_half_mangled(name) == name);
}

BOOST_AUTO_TEST_CASE(an_unknown_escape_stays) {
  BOOST_TEST(demangle_half_mangled("$XX$$u7$$u1f600$$u::f::h0123456789abcdef") ==
             "$XX$$u7$$u1f600$$u::f");
}

BOOST_AUTO_TEST_SUITE_END()
