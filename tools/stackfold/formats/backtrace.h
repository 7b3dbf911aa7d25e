// Reads backtraces of all threads: gdb's "thread apply all bt" (pstack and gstack print the same)
// and eu-stack.  Each backtrace is a stack with the count 1.
//
//   Thread 2 (Thread 0x7f44 (LWP 12041) "worker"):
//   #0  0x00007f4451 in usleep (useconds=5) at usleep.c:31
//   #1  main () from /lib/libx.so
//
//   TID 12041:
//   #0  0x00007f44512ed545     __nanosleep - /lib/libc.so.6
//       ../sysdeps/nanosleep.c:48:7
//   #1  0x0000558a2044739c - 1 thread_main - /usr/bin/prog
//
// Source: gdb 13 and eu-stack 0.188, by running them.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::backtrace {

bool looks_like_gdb(std::string_view head);
bool looks_like_eu_stack(std::string_view head);

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// Returns the function in the text after "#0  ", without address, arguments and place.
std::string function_of(std::string_view frame);

}  // namespace pe::fold::backtrace
