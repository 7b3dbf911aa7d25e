// What the libraries for programs need of the C++ library, which is not linked: the program may
// have another or none, and a second one would bring its own memory along.
//
// These are calls that cannot happen: a text is never cut beyond its end here, and a CfiProgram is
// given its room.
// SPDX-License-Identifier: MIT
#include <cstddef>

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming,cert-dcl58-cpp,misc-definitions-in-headers,readability-redundant-declaration)
namespace std {

// In the form of libstdc++'s own declarations, which clang wants the first one to have.
__attribute__((noreturn)) void __throw_length_error(const char* /*what*/);
__attribute__((noreturn)) void __throw_out_of_range_fmt(const char* /*format*/, ...);
__attribute__((noreturn)) void __throw_bad_alloc();
__attribute__((noreturn)) void __throw_bad_array_new_length();
__attribute__((noreturn)) void __glibcxx_assert_fail(const char* /*file*/, int /*line*/,
                                                     const char* /*caller*/,
                                                     const char* /*condition*/) noexcept;

void __throw_length_error(const char* /*what*/) { __builtin_trap(); }
void __throw_out_of_range_fmt(const char* /*format*/, ...) { __builtin_trap(); }
// clang 19 keeps the growing of a vector that never grows.
void __throw_bad_alloc() { __builtin_trap(); }
void __throw_bad_array_new_length() { __builtin_trap(); }

// Headers call it where _GLIBCXX_ASSERTIONS is defined, as distributions and newer mesons do.
void __glibcxx_assert_fail(const char* /*file*/, int /*line*/, const char* /*caller*/,
                           const char* /*condition*/) noexcept {
  __builtin_trap();
}

}  // namespace std
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming,cert-dcl58-cpp,misc-definitions-in-headers,readability-redundant-declaration)
