// The call graph that `sample` of macOS prints:
//
//   Call graph:
//       100 Thread_1234   DispatchQueue_1: com.apple.main-thread  (serial)
//       + 60 main  (in probe) + 36  [0x100f3fe3c]
//       + ! 40 work(int)  (in probe) + 44  [0x100f3fd00]  probe.cpp:12
//
// A line stands for its own samples and those below it; depth is the column of the number,
// in front of which "+ ! : |" draw the tree.
// Source: reports of macOS 10.6 to 26 as people published them, and what
// stackcollapse-sample.awk makes of them.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::macos_sample {

bool looks_like(std::string_view head);

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// "main  (in probe) + 36  [0x1]" is "probe`main"; a thread's line stays, its blanks made one.
std::string frame_of(std::string_view text);

}  // namespace pe::fold::macos_sample
