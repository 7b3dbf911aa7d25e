// The picture of a comparison.
// SPDX-License-Identifier: MIT
#pragma once

#include "calltree/call_tree.h"
#include "cli/run.h"
#include "flamediff/comparison.h"
#include "flamediff/options.h"

namespace pe::flamediff {

/// Writes the page to `out`; what does not fit it is told on io.err.
void draw(const calltree::CallTree& tree, const Comparison& comparison, const Options& options,
          cli::Io& io, io::Output& out);

/// Writes a page that shows `message` alone.
void draw_error(std::string_view message, const Options& options, io::Output& out);

}  // namespace pe::flamediff
