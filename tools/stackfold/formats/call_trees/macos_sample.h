// Reads the call graph that `sample` of macOS prints:
//
//   Call graph:
//       100 Thread_1234   DispatchQueue_1: com.apple.main-thread  (serial)
//       + 60 main  (in probe) + 36  [0x100f3fe3c]
//       + ! 40 work(int)  (in probe) + 44  [0x100f3fd00]  probe.cpp:12
//
// The number of a line includes its own samples and those of the lines below it.  The column of the
// number gives the depth; "+ ! : |" before it draw the tree.
// Source: published reports of macOS 10.6 to 26, and the output of stackcollapse-sample.awk.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::macos_sample {

bool looks_like(std::string_view head);

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// Returns "probe`main" for "main  (in probe) + 36  [0x1]".  A thread's line keeps its text, with
/// single blanks.
std::string frame_of(std::string_view text);

}  // namespace pe::fold::macos_sample
