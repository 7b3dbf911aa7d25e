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
