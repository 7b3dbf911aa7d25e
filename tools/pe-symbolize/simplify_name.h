// Shorter forms of demangled names, for people.  Templates of C++'s standard library lose the parts
// that only the compiler needs.
//
//   std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >  std::string
//   std::vector<int, std::allocator<int> >::push_back                 std::vector<int>::push_back
//   std::__1::map<int, T, std::__1::less<int>, ...>                   std::map<int, T>
//   f<more than kMaxArgumentBytes>                                    f<...>
//   f[abi:cxx11], A<B<C> >, {{closure}}                               f, A<B<C>>, {closure}
//
// The grammar: a name is text, brackets () [] {} <> that nest, and operators, which are not
// brackets.  `<` opens unless it compares, `)<(`.  `>` closes only a `<`, so within (), where C++
// and libiberty put comparisons, it is text.  `->` is not a bracket.  A name whose brackets do not
// pair is returned unchanged.
//
// Guarantees: the result is never longer, brackets that paired still pair, and a second run changes
// nothing.
// Cost: linear; 0.9 us a name of libLLVM, of 65 bytes on average, which become 43.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pe::symbolize {

/// Template arguments that are still longer than this become `<...>`.
inline constexpr std::size_t kMaxArgumentBytes = 80;

/// Accepts a C++, Rust or D name as demangle() returns it.  Names of Go (`main.(*T).Foo`) and of C
/// have nothing to shorten.
std::string simplify_name(std::string_view name);

}  // namespace pe::symbolize
