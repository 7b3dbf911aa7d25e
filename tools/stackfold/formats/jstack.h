// The thread dumps of jstack, and of a Java VM that got SIGQUIT: each running thread is a
// stack that counts as one.
//
//   "worker-1" #12 prio=5 ... nid=0x2f5a runnable  [0x00007f3c7519c000]
//      java.lang.Thread.State: RUNNABLE
//   	at Busy.hash(Busy.java:4)
//   	- locked <0x0000000694c03030> (a Lock)
//
// Source: jstack of OpenJDK 8 to 21, and what stackcollapse-jstack.pl makes of it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::jstack {

bool looks_like(std::string_view head);

/// The state of a thread is told apart as events are: RUNNABLE is folded if nothing else is asked
/// for.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::jstack
