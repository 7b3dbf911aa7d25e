// What memleak of bcc prints: allocations that nobody has freed, by stack.
//
//   [11:16:33] Top 10 stacks with outstanding allocations:
//   	80 bytes in 5 allocations from stack
//   		0x0000000000400a1d	main+0x6d [prog]       leaf first
//
// It prints that again and again.  What is outstanding in one report is so in the next, so
// just the last report is folded.  Source: the print statements of bcc 0.26.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::memleak {

bool looks_like(std::string_view head);

/// Events are "bytes", which is folded if nothing else is asked for, and "allocations".
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::memleak
