// SPDX-License-Identifier: MIT
#include "pe-symbolize/simplify_name.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "names/demangle.h"
#include "objects/image.h"
#include "objects/symbol_table.h"
#include "support/large_library.h"

using pe::symbolize::kMaxArgumentBytes;
using pe::symbolize::simplify_name;

namespace {

/// True if all brackets except <> are in pairs.
bool has_pairs(const std::string& name) {
  std::string open;
  for (const char c : name) {
    if (c == '(' || c == '[' || c == '{')
      open += c;
    if (c != ')' && c != ']' && c != '}')
      continue;
    if (open.empty() || open.back() != (c == ')' ? '(' : c == ']' ? '[' : '{'))
      return false;
    open.pop_back();
  }
  return open.empty();
}

/// True if the name still contains text that simplify_name() should remove.
bool is_noisy(const std::string& name) {
  for (const char* noise : {"std::__cxx11::",
                            "std::basic_string<char, std::char_traits<char>, "
                            "std::allocator<char>",
                            "[abi:cxx11]", "> >"})
    if (name.find(noise) != std::string::npos)
      return true;
  return false;
}

void stays(const std::string& name) { BOOST_TEST(simplify_name(name) == name); }

}  // namespace

BOOST_AUTO_TEST_SUITE(simplify_names)

BOOST_AUTO_TEST_CASE(strings_and_streams_have_their_short_names) {
  const std::string string =
      "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
  BOOST_TEST(simplify_name(string) == "std::string");
  BOOST_TEST(simplify_name(string + "::append") == "std::string::append");
  BOOST_TEST(simplify_name("f<" + string + " const&, " + string + " >") ==
             "f<std::string const&, std::string>");
  BOOST_TEST(simplify_name("std::__1::basic_string<wchar_t, std::__1::char_traits<wchar_t>, "
                           "std::__1::allocator<wchar_t>>::size") == "std::wstring::size");
  BOOST_TEST(simplify_name("std::basic_ostream<char, std::char_traits<char> >::flush") ==
             "std::ostream::flush");
  stays("std::basic_string<char, std::char_traits<char>, my::allocator<char>>");
  stays("std::basic_string<unsigned char>");
}

BOOST_AUTO_TEST_CASE(default_arguments_of_containers_go) {
  BOOST_TEST(simplify_name("std::vector<int, std::allocator<int> >::push_back") ==
             "std::vector<int>::push_back");
  BOOST_TEST(simplify_name("std::map<int, A, std::less<int>, std::allocator<std::pair<int const, "
                           "A> > >::at") == "std::map<int, A>::at");
  BOOST_TEST(simplify_name("std::unordered_map<K, V, std::hash<K>, std::equal_to<K>, "
                           "std::allocator<std::pair<K const, V> > >") ==
             "std::unordered_map<K, V>");
  BOOST_TEST(simplify_name("std::unique_ptr<A<B>, std::default_delete<A<B> > >::~unique_ptr") ==
             "std::unique_ptr<A<B>>::~unique_ptr");
  BOOST_TEST(simplify_name("std::stack<int, std::deque<int, std::allocator<int> > >") ==
             "std::stack<int>");
}

BOOST_AUTO_TEST_CASE(what_differs_from_the_default_stays) {
  stays("std::map<int, std::less<int>>");
  stays("std::set<int, std::greater<int>>");
  stays("std::set<int, std::less<void>>");
  stays("std::vector<int, std::allocator<long>>");
  stays("my::vector<int, std::allocator<int>>");
  stays("my::std::vector<int, std::allocator<int>>");
  stays("std::allocator<int>::allocate");
}

BOOST_AUTO_TEST_CASE(inline_namespaces_and_tags_go) {
  BOOST_TEST(simplify_name("std::filesystem::__cxx11::path::string[abi:cxx11]") ==
             "std::filesystem::path::string");
  BOOST_TEST(simplify_name("std::chrono::_V2::system_clock::now") ==
             "std::chrono::system_clock::now");
  BOOST_TEST(simplify_name("std::__debug::vector<int>") == "std::vector<int>");
  stays("my::__1::f");
}

BOOST_AUTO_TEST_CASE(long_arguments_are_left_out) {
  const std::string most(kMaxArgumentBytes, 'x');
  stays("f<" + most + ">");
  BOOST_TEST(simplify_name("f<" + most + "x>::g<int>") == "f<...>::g<int>");
  BOOST_TEST(simplify_name("a::operator<< <" + most + "x>") == "a::operator<< <...>");
  BOOST_TEST(simplify_name("a::operator()<" + most + "x>") == "a::operator()<...>");
  stays("<" + most + "x as core::fmt::Display>::fmt");
  stays("core::fmt::<impl " + most + "x>::fmt");
}

BOOST_AUTO_TEST_CASE(operators_are_no_brackets) {
  for (const char* name :
       {"operator<", "operator>", "operator<<", "operator>>", "operator->", "operator->*",
        "operator<=>", "operator<=", "operator>=", "operator<<=", "operator>>=", "operator()",
        "operator[]", "operator new[]", "operator delete[]", "operator,", "operator\"\"_s"}) {
    stays(name);
    stays(std::string("ns::A<int>::") + name);
    BOOST_TEST(simplify_name(std::string("ns::") + name + " <A<B> >") ==
               std::string("ns::") + name + " <A<B>>");
  }
  stays("std::operator<< <std::char_traits<char>>");
  stays("my_operator<int>");
  stays("A::operator std::vector<int>");
  BOOST_TEST(simplify_name("A::operator std::vector<int, std::allocator<int> >") ==
             "A::operator std::vector<int>");
}

BOOST_AUTO_TEST_CASE(comparisons_and_arrows_are_no_brackets) {
  stays("f<((sizeof (T))>(8ul)), int>");
  stays("f<(sizeof (T))<(8ul), int>");
  stays("f<(sizeof (T))<=(8ul), int>");
  stays("f<decltype (fp->x)>");
  stays("run::{lambda(auto:1)#1}::operator()<(Kind)1>");
  stays("(anonymous namespace)::f<(anonymous namespace)::A>");
  stays("core::ops::FnOnce<fn(u8) -> u8>::call_once");
}

BOOST_AUTO_TEST_CASE(closures_of_rust_are_written_once_in_braces) {
  BOOST_TEST(simplify_name("a::main::{{closure}}") == "a::main::{closure}");
  stays("a::main::{closure#0}");
}

BOOST_AUTO_TEST_CASE(other_names_stay) {
  for (const char* name :
       {"", "main", "main.(*T).Foo", "main.Map[go.shape.int,go.shape.string]", "main.main.func1.2",
        "type:.eq.struct { a int; b string }", "main.recv<-chan int", "a.b.c!(int, string).d",
        "f<unbalanced", "f>unbalanced", "f<(>)", "x)", "puts@plt", "main.cold"})
    stays(name);
}

BOOST_AUTO_TEST_CASE(thousands_of_real_names_keep_what_they_promise) {
  std::size_t names = 0, shorter = 0;
  for (const std::string& library :
       {std::string("/usr/lib/x86_64-linux-gnu/libstdc++.so.6"), pe::testing::large_library()}) {
    auto opened = pe::objects::Image::open(library);
    BOOST_REQUIRE(std::holds_alternative<pe::objects::Image>(opened));
    const pe::objects::SymbolTable table(std::get<pe::objects::Image>(opened));
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      const std::string name = pe::names::demangle(table.at(i).name);
      const std::string simple = simplify_name(name);
      ++names;
      shorter += simple.size() < name.size() ? 1 : 0;
      if (simple.size() > name.size() || simplify_name(simple) != simple ||
          has_pairs(simple) != has_pairs(name) || is_noisy(simple))
        BOOST_ERROR(name + " became " + simple);
    }
  }
  BOOST_TEST(names > 10000u);
  BOOST_TEST(shorter > 1000u);
}

BOOST_AUTO_TEST_CASE(deep_brackets_are_no_trouble) {
  const std::size_t depth = 100000;
  std::string deep;
  for (std::size_t i = 0; i < depth; ++i)
    deep += "a<(";
  for (std::size_t i = 0; i < depth; ++i)
    deep += ")>";
  BOOST_TEST(simplify_name(deep).size() < 200u);
}

BOOST_AUTO_TEST_SUITE_END()
