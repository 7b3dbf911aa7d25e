// Reads folded lines into one call tree.  Root frames that are times ("@12.300") become times of
// the counts; not with flamegraph.pl's rules, nor with an x-axis that is the order of the lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flamesvg/options.h"
#include "flamesvg/perl_frames.h"
#include "folded/folded_reader.h"
#include "painting/times.h"
#include "painting/tree/call_tree.h"

namespace pe::flamesvg {

struct Profile {
  painting::CallTree tree;
  painting::Times times;  ///< of the tree's nodes; empty if the stacks have no times
  folded::MalformedLines malformed;
  std::vector<folded::Fact> facts;  ///< about the recording
  std::optional<PerlFrames> perl;   ///< with --compat: what is drawn
};

/// Reads all `files` ("-" means `stdin_fd`).  Throws Error.
Profile read_profile(std::span<const std::string> files, const Options& options, int stdin_fd);

}  // namespace pe::flamesvg
