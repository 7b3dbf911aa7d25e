// Draws a comparison as a flame graph.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "flamediff/comparison.h"
#include "flamediff/options.h"
#include "painting/tree/call_tree.h"

namespace pe::flamediff {

/// Writes the page to io.out.  Reports replaced characters and a missing embedded tree.
void draw(const painting::CallTree& tree, const Comparison& comparison, const Options& options,
          Io& io);

/// Writes a page that shows only `message`.
void draw_error(std::string_view message, const Options& options, Output& out);

}  // namespace pe::flamediff
