// Reads the maps that bpftrace prints when it exits, or by print():
//
//   @cpu[
//       work::hash(int)+39            leaf first, indented
//       main+158
//   , 12, prog]: 35                   the rest of the key, the count
//
// Source: bpftrace 0.17 to 0.21, by running it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::bpftrace {

bool looks_like(std::string_view head);

/// The sum of different maps means nothing (one counts, another sums up bytes).  So each map is an
/// event with the map's name; "@" is the map without a name.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::bpftrace
