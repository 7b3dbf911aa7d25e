// Reads the thread dumps of jstack, and of a Java VM that got SIGQUIT.  Each running thread is a
// stack with the count 1.
//
//   "worker-1" #12 prio=5 ... nid=0x2f5a runnable  [0x00007f3c7519c000]
//      java.lang.Thread.State: RUNNABLE
//   	at Busy.hash(Busy.java:4)
//   	- locked <0x0000000694c03030> (a Lock)
//
// Source: jstack of OpenJDK 8 to 21, and the output of stackcollapse-jstack.pl.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::jstack {

bool looks_like(std::string_view head);

/// The state of a thread is its event.  Folds RUNNABLE by default.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::jstack

// Reads the output of bcc's memleak: allocations not yet freed, by stack.
//
//   [11:16:33] Top 10 stacks with outstanding allocations:
//   	80 bytes in 5 allocations from stack
//   		0x0000000000400a1d	main+0x6d [prog]       leaf first
//
// memleak prints such a report repeatedly.  Allocations outstanding in one report are usually in
// the next one as well, so only the last report is folded.
//
// Source: the print statements of bcc 0.26.

namespace pe::fold::memleak {

bool looks_like(std::string_view head);

/// The events are "bytes", the default, and "allocations".
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::memleak
