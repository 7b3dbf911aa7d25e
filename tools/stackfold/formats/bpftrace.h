// The maps that bpftrace prints at its end, or by print():
//
//   @cpu[
//       work::hash(int)+39            leaf first, indented
//       main+158
//   , 12, prog]: 35                   what else is in the key, the count
//
// Source: bpftrace 0.17 to 0.21, by running it.
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "stackfold/formats/format.h"

namespace pe::fold::bpftrace {

bool looks_like(std::string_view head);

/// Different maps do not add up to anything (one counts, another sums up bytes): they are
/// told apart as events are, by their name, "@" being the one without.
TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts);

}  // namespace pe::fold::bpftrace
