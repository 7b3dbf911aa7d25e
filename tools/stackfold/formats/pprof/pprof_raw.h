// Reads the text of `go tool pprof -raw`:
//
//   Samples:
//   samples/count cpu/nanoseconds
//            39  390000000: 6 7 8 8 9 5          numbers of locations, leaf first
//   Locations
//        6: 0x4b1c1a M=1 main.mix /tmp/main.go:7 s=0
//                main.hash /tmp/main.go:6 s=0     mix is inlined into it
//   Mappings
//   1: 0x400000/0x4b2000/0x0 prog  [FN]
//
// The names of locations follow the stacks, so the reader keeps stacks as numbers until the end.
// Source: pprof of Go 1.19, by running it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::pprof_raw {

bool looks_like(std::string_view head);

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

/// Returns "main.f[int]" for "main.f[int] /src/my main.go:7:3 s=5(main.f)".
std::string_view function_of(std::string_view line);

}  // namespace pe::fold::pprof_raw
