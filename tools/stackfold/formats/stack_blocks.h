// Reads stacks as blocks of lines with a count after each block.  DTrace prints them for an
// aggregation by stack, as do bcc's profile, offcputime, stackcount and wakeuptime.
//
//     libc.so.1`__read+0x15          leaf first
//     mysqld`main+0x12
//     -                prog (123)    bcc: the process
//       12                           the count, or microseconds
//
// Blank lines separate the stacks of one key.
// Source: the output of stackcollapse.pl, and the print statements of bcc 0.26.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::stack_blocks {

bool looks_like(std::string_view head);
/// As looks_like(), but the text must also have a line "-   comm (pid)".
bool looks_like_bcc(std::string_view head);

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::stack_blocks
