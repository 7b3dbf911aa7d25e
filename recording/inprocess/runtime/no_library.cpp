// Defines the functions of the C++ library that our libraries for programs need.  These libraries
// do not link the C++ library: the program may have another one or none, and a second one would
// bring its own memory.
//
// Nothing ever calls these functions: our libraries cut no text beyond its end, and give each
// CfiProgram its room.
// SPDX-License-Identifier: MIT
#include <cstddef>

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming,cert-dcl58-cpp,misc-definitions-in-headers,readability-redundant-declaration)
namespace std {

// clang requires that the first declarations have the form of libstdc++'s own.
__attribute__((noreturn)) void __throw_length_error(const char* /*what*/);
__attribute__((noreturn)) void __throw_out_of_range_fmt(const char* /*format*/, ...);
__attribute__((noreturn)) void __throw_bad_alloc();
__attribute__((noreturn)) void __throw_bad_array_new_length();
__attribute__((noreturn)) void __glibcxx_assert_fail(const char* /*file*/, int /*line*/,
                                                     const char* /*caller*/,
                                                     const char* /*condition*/) noexcept;

void __throw_length_error(const char* /*what*/) { __builtin_trap(); }
void __throw_out_of_range_fmt(const char* /*format*/, ...) { __builtin_trap(); }
// clang 19 keeps the code that grows a vector, although the vector never grows.
void __throw_bad_alloc() { __builtin_trap(); }
void __throw_bad_array_new_length() { __builtin_trap(); }

// Headers call it if _GLIBCXX_ASSERTIONS is defined; distributions and newer versions of meson
// define it.
void __glibcxx_assert_fail(const char* /*file*/, int /*line*/, const char* /*caller*/,
                           const char* /*condition*/) noexcept {
  __builtin_trap();
}

}  // namespace std
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming,cert-dcl58-cpp,misc-definitions-in-headers,readability-redundant-declaration)
