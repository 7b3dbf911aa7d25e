// Reads the text of `simpleperf report-sample --show-callchain`:
//
//   sample:
//     event_type: cpu-cycles
//     event_count: 10000
//     thread_id: 31881
//     thread_name: RenderThread
//     vaddr_in_file: 1f2b4
//     file: /system/lib64/libc.so
//     symbol: memcpy
//     callchain:
//       vaddr_in_file: 44
//       file: /data/app/base.apk
//       symbol: main
//
// Source: published output of that command.  (simpleperf's report_sample.py prints the text of perf
// script.)
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::simpleperf {

bool looks_like(std::string_view head);

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::simpleperf
