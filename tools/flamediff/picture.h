// The picture of a comparison.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "flamediff/comparison.h"
#include "flamediff/options.h"
#include "picture/tree/call_tree.h"

namespace pe::flamediff {

/// Writes the page to `out`; what does not fit it is told on io.err.
void draw(const picture::CallTree& tree, const Comparison& comparison, const Options& options,
          Io& io, Output& out);

/// Writes a page that shows `message` alone.
void draw_error(std::string_view message, const Options& options, Output& out);

}  // namespace pe::flamediff
